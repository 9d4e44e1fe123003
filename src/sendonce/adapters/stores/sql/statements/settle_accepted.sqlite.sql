-- The usual outcome, a whole group at once. ?1 now  ?2 JSON [[job, attempt, message id], …]
UPDATE message_jobs SET
    state = 'sent', message_id = o.value ->> 2, accepted_attempt = attempt,
    settled_at = coalesce(settled_at, ?1), code = NULL, reason = NULL
FROM json_each(?2) AS o
WHERE message_jobs.id = o.value ->> 0 AND message_jobs.attempt = o.value ->> 1
  AND message_jobs.state = 'sending' AND message_jobs.accepted_attempt IS NULL
