-- Tenants that get their first dispatch awake at a sender start where its other tenants are: domain/engine/dispatches.
-- What another transaction holds is left as it is: who holds it is being served.
WITH late AS MATERIALIZED (
    SELECT w.sender_id, w.tenant_id, coalesce(
        (SELECT min(o.served) FROM tenant_turns o
         WHERE o.sender_id = w.sender_id AND EXISTS (
            SELECT 1 FROM dispatches a
            WHERE a.phase = 'running' AND a.tenant_id = o.tenant_id AND a.awake = true AND a.sender_id = o.sender_id)),
        (SELECT max(o.served) FROM tenant_turns o WHERE o.sender_id = w.sender_id),
        0) AS front
    FROM (
        SELECT DISTINCT s.sender_id, s.tenant_id FROM dispatches s
        WHERE s.phase = 'running' AND NOT s.awake AND NOT s.paused AND NOT s.cancelled AND s.due_from <= %(now)s) w
    WHERE NOT EXISTS (
        SELECT 1 FROM dispatches a
        WHERE a.phase = 'running' AND a.tenant_id = w.tenant_id AND a.awake = true AND a.sender_id = w.sender_id)
), behind AS MATERIALIZED (
    SELECT t.sender_id, t.tenant_id, l.front
    FROM tenant_turns t JOIN late l ON l.sender_id = t.sender_id AND l.tenant_id = t.tenant_id
    WHERE t.served < l.front
    FOR NO KEY UPDATE OF t SKIP LOCKED
), moved AS (
    UPDATE tenant_turns t SET served = b.front
    FROM behind b WHERE t.sender_id = b.sender_id AND t.tenant_id = b.tenant_id
)
INSERT INTO tenant_turns (sender_id, tenant_id, served)
SELECT sender_id, tenant_id, front FROM late ORDER BY sender_id, tenant_id
ON CONFLICT (sender_id, tenant_id) DO NOTHING
