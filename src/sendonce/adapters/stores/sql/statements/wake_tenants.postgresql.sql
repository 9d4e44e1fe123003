-- Tenants that get their first dispatch awake start where the other tenants are: domain/engine/dispatches.
WITH moving AS MATERIALIZED (
    SELECT t.id, t.served, EXISTS (
        SELECT 1 FROM dispatches a WHERE a.phase = 'running' AND a.tenant_id = t.id AND a.awake = true) AS awake
    FROM tenants t
), front AS MATERIALIZED (
    SELECT coalesce(min(served) FILTER (WHERE awake), max(served)) AS served FROM moving
), late AS MATERIALIZED (
    SELECT t.id FROM tenants t
    WHERE t.served < (SELECT served FROM front) AND t.id IN (SELECT id FROM moving WHERE NOT awake) AND EXISTS (
        SELECT 1 FROM dispatches s
        WHERE s.phase = 'running' AND NOT s.awake AND NOT s.paused AND NOT s.cancelled AND s.due_from <= %(now)s
          AND s.tenant_id = t.id)
    FOR NO KEY UPDATE OF t SKIP LOCKED
)
UPDATE tenants SET served = (SELECT served FROM front) WHERE id IN (SELECT id FROM late)
