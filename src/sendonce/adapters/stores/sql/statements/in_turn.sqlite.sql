-- The dispatches of a sender that are awake, in the order of fair share. ?1 at most so many  ?2 sender
SELECT d.id, d.tenant_id, d.letter_id
FROM tenant_turns t JOIN dispatches d ON d.id IN (
    SELECT a.id FROM dispatches a
    WHERE a.phase = 'running' AND a.tenant_id = t.tenant_id AND a.awake = true AND a.sender_id = ?2
    ORDER BY a.served, a.id LIMIT ?1)
WHERE t.sender_id = ?2
ORDER BY t.served, t.tenant_id, d.served, d.id
LIMIT ?1
