-- Tenants that get their first dispatch awake start where the other tenants are: domain/engine/dispatches. ?1 now
WITH moving AS (
    SELECT t.id, t.served, EXISTS (
        SELECT 1 FROM dispatches a WHERE a.phase = 'running' AND a.tenant_id = t.id AND a.awake = true) AS awake
    FROM tenants t
), front AS (
    SELECT coalesce(min(served) FILTER (WHERE awake), max(served)) AS served FROM moving
)
UPDATE tenants SET served = (SELECT served FROM front)
WHERE served < (SELECT served FROM front) AND id IN (SELECT id FROM moving WHERE NOT awake) AND EXISTS (
    SELECT 1 FROM dispatches s
    WHERE s.phase = 'running' AND NOT s.awake AND NOT s.paused AND NOT s.cancelled AND s.due_from <= ?1
      AND s.tenant_id = tenants.id)
