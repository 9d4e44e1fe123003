-- Dispatches whose time has come are awake. They start where the others of their tenant and sender are: domain/engine/dispatches.
-- What another transaction holds is left to the next claim, and so is what came after wake_tenants: who has no row
-- there is in nobody's order.
WITH due AS MATERIALIZED (
    SELECT s.id FROM dispatches s
    WHERE s.phase = 'running' AND NOT s.awake AND NOT s.paused AND NOT s.cancelled AND s.due_from <= %(now)s
      AND EXISTS (
        SELECT 1 FROM tenant_turns t WHERE t.sender_id = s.sender_id AND t.tenant_id = s.tenant_id)
    FOR NO KEY UPDATE OF s SKIP LOCKED
)
UPDATE dispatches d SET awake = true, served = greatest(d.served, coalesce(
    (SELECT min(a.served) FROM dispatches a
     WHERE a.phase = 'running' AND a.tenant_id = d.tenant_id AND a.awake = true AND a.sender_id = d.sender_id),
    (SELECT max(s.served) FROM dispatches s
     WHERE s.phase = 'running' AND s.tenant_id = d.tenant_id AND s.awake = false AND s.sender_id = d.sender_id)))
FROM due WHERE d.id = due.id
