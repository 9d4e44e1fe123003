-- A dispatch has given all that was due: it sleeps until its next job is. ?1 dispatch  ?2 now
UPDATE dispatches SET due_from = next.due_at, awake = coalesce(next.due_at <= ?2, false)
FROM (SELECT min(due_at) AS due_at FROM job_states WHERE dispatch_id = ?1 AND state = 'scheduled') AS next
WHERE id = ?1 AND phase = 'running' AND NOT paused AND NOT cancelled
