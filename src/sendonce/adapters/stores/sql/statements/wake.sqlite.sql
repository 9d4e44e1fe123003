-- Dispatches whose time has come are awake. They start where the others of their tenant and sender are: domain/engine/dispatches.
-- ?1 now
UPDATE dispatches SET awake = true, served = max(served, coalesce(
    (SELECT min(a.served) FROM dispatches a
     WHERE a.phase = 'running' AND a.tenant_id = dispatches.tenant_id AND a.awake = true
       AND a.sender_id = dispatches.sender_id),
    (SELECT max(s.served) FROM dispatches s
     WHERE s.phase = 'running' AND s.tenant_id = dispatches.tenant_id AND s.awake = false
       AND s.sender_id = dispatches.sender_id)))
WHERE phase = 'running' AND NOT awake AND NOT paused AND NOT cancelled AND due_from <= ?1
