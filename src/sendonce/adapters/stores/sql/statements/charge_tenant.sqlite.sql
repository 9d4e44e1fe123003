-- A tenant's dispatch gave a group. ?1 sender  ?2 tenant
UPDATE tenant_turns SET served = served + 1.0 / (SELECT weight FROM tenants WHERE id = ?2)
WHERE sender_id = ?1 AND tenant_id = ?2
