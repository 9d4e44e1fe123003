-- A tenant's dispatch gave a group. Whoever is charging it at the same moment need not be waited for.
UPDATE tenant_turns SET served = served + 1.0 / (SELECT weight FROM tenants WHERE id = %(tenant)s)
WHERE (sender_id, tenant_id) = (
    SELECT sender_id, tenant_id FROM tenant_turns
    WHERE sender_id = %(sender_id)s AND tenant_id = %(tenant)s FOR NO KEY UPDATE SKIP LOCKED)
