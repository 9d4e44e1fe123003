-- A tenant's dispatch gave a group. ?1 tenant
UPDATE tenants SET served = served + 1 WHERE id = ?1
