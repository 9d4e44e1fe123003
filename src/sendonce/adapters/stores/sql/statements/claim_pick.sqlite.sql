-- Due jobs of one dispatch and whether each is suppressed, as one JSON array.
-- ?1 limit  ?2 now  ?3 dispatch
SELECT json_group_array(json_array(
    id, suppressed, letter_id, json(thread), attempt, tries, recipient, json(fields)))
FROM (
    SELECT j.id, p.letter_id, p.thread, j.attempt, j.tries, p.recipient, p.fields, EXISTS (
        SELECT 1 FROM suppressions s WHERE s.key = p.suppression_key AND s.tenant_id IN (p.tenant_id, '*')
          AND NOT (s.reason = 'unsubscribed' AND s.tenant_id <> '*'
            AND (SELECT d.asked_for FROM dispatches d WHERE d.id = ?3))
    ) AS suppressed
    FROM job_states j CROSS JOIN planned_jobs p ON p.id = j.id
    WHERE j.dispatch_id = ?3 AND j.state = 'scheduled' AND j.due_at <= ?2
      AND EXISTS (
        SELECT 1 FROM dispatches d
        WHERE d.id = ?3 AND d.phase = 'running' AND NOT d.paused AND NOT d.cancelled)
    ORDER BY j.due_at, j.priority, j.id
    LIMIT ?1
)
