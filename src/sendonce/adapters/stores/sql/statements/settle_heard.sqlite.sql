-- The provider's event is often faster than our settle: these are sent by its word. ?1 now
-- ?2 JSON [[job, attempt, message id], …]
UPDATE job_states SET
    message_id = coalesce(message_id, o.value ->> 2), settled_at = coalesce(settled_at, ?1),
    code = NULL, reason = NULL
FROM json_each(?2) AS o
WHERE job_states.id = o.value ->> 0 AND job_states.attempt = o.value ->> 1
  AND job_states.state = 'sent' AND job_states.accepted_attempt = job_states.attempt
RETURNING id, attempt
