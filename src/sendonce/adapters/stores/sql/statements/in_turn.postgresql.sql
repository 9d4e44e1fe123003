-- The dispatches of a sender that are awake, in the order of fair share.
SELECT d.id::text, d.tenant_id, d.letter_id::text
FROM tenant_turns t CROSS JOIN LATERAL (
    SELECT a.id, a.tenant_id, a.letter_id, a.served FROM dispatches a
    WHERE a.phase = 'running' AND a.tenant_id = t.tenant_id AND a.awake = true AND a.sender_id = t.sender_id
    ORDER BY a.served, a.id LIMIT %(limit)s) d
WHERE t.sender_id = %(sender_id)s
ORDER BY t.served, d.tenant_id, d.served, d.id LIMIT %(limit)s
