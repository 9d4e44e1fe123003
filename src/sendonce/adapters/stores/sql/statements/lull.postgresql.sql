-- A dispatch has given all that was due: it sleeps until its next job is.
UPDATE dispatches SET due_from = next.due_at, awake = coalesce(next.due_at <= %(now)s, false)
FROM (
    SELECT min(due_at) AS due_at FROM job_states WHERE dispatch_id = %(dispatch)s AND state = 'scheduled'
) AS next
WHERE id = %(dispatch)s AND phase = 'running' AND NOT paused AND NOT cancelled
