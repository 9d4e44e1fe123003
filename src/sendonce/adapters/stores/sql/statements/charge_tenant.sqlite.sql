-- A tenant's dispatch gave a group. ?1 sender  ?2 tenant
UPDATE tenant_turns SET served = served + 1 WHERE sender_id = ?1 AND tenant_id = ?2
