-- A tenant's dispatch gave a group. Whoever is charging it at the same moment need not be waited for.
UPDATE tenants SET served = served + 1
WHERE id = (SELECT id FROM tenants WHERE id = %(tenant)s FOR NO KEY UPDATE SKIP LOCKED)
