-- The dispatches of a sender that are awake, in the order of fair share.
SELECT d.id::text, d.tenant_id, d.letter_id::text
FROM tenants t CROSS JOIN LATERAL (
    SELECT a.id, a.tenant_id, a.letter_id, a.served FROM dispatches a
    WHERE a.phase = 'running' AND a.tenant_id = t.id AND a.awake = true AND a.sender_id = %(sender_id)s
    ORDER BY a.served, a.id LIMIT %(limit)s) d
ORDER BY t.served, d.tenant_id, d.served, d.id LIMIT %(limit)s
