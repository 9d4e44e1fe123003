-- Tenants that get their first dispatch awake at a sender start where its other tenants are: domain/engine/dispatches.
-- ?1 now
INSERT INTO tenant_turns (sender_id, tenant_id, served)
SELECT w.sender_id, w.tenant_id, coalesce(
    (SELECT min(o.served) FROM tenant_turns o
     WHERE o.sender_id = w.sender_id AND EXISTS (
        SELECT 1 FROM dispatches a
        WHERE a.phase = 'running' AND a.tenant_id = o.tenant_id AND a.awake = true AND a.sender_id = o.sender_id)),
    (SELECT max(o.served) FROM tenant_turns o WHERE o.sender_id = w.sender_id),
    0)
FROM (
    SELECT DISTINCT s.sender_id, s.tenant_id FROM dispatches s
    WHERE s.phase = 'running' AND NOT s.awake AND NOT s.paused AND NOT s.cancelled AND s.due_from <= ?1) w
WHERE NOT EXISTS (
    SELECT 1 FROM dispatches a
    WHERE a.phase = 'running' AND a.tenant_id = w.tenant_id AND a.awake = true AND a.sender_id = w.sender_id)
ON CONFLICT (sender_id, tenant_id) DO UPDATE SET served = max(served, excluded.served)
