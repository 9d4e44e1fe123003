-- The provider's event is often faster than our settle: these are sent by its word. ?1 now
-- ?2 JSON [[job, attempt, message id], …]
UPDATE message_jobs SET
    message_id = coalesce(message_id, o.value ->> 2), settled_at = coalesce(settled_at, ?1),
    code = NULL, reason = NULL
FROM json_each(?2) AS o
WHERE message_jobs.id = o.value ->> 0 AND message_jobs.attempt = o.value ->> 1
  AND message_jobs.state = 'sent' AND message_jobs.accepted_attempt = message_jobs.attempt
RETURNING id, attempt
