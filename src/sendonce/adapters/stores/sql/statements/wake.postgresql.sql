-- Dispatches whose time has come are awake. They start where the others of their tenant and sender are: domain/engine/dispatches.
-- What another transaction holds is left to the next claim.
WITH due AS MATERIALIZED (
    SELECT id FROM dispatches
    WHERE phase = 'running' AND NOT awake AND NOT paused AND NOT cancelled AND due_from <= %(now)s
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE dispatches d SET awake = true, served = greatest(d.served, coalesce(
    (SELECT min(a.served) FROM dispatches a
     WHERE a.phase = 'running' AND a.tenant_id = d.tenant_id AND a.awake = true AND a.sender_id = d.sender_id),
    (SELECT max(s.served) FROM dispatches s
     WHERE s.phase = 'running' AND s.tenant_id = d.tenant_id AND s.awake = false AND s.sender_id = d.sender_id)))
FROM due WHERE d.id = due.id
