-- The usual outcome, a whole group at once. ?1 now  ?2 JSON [[job, attempt, message id], …]
UPDATE job_states SET
    state = 'sent', message_id = o.value ->> 2, accepted_attempt = attempt,
    settled_at = coalesce(settled_at, ?1), code = NULL, reason = NULL
FROM json_each(?2) AS o
WHERE job_states.id = o.value ->> 0 AND job_states.attempt = o.value ->> 1
  AND job_states.state = 'sending' AND job_states.accepted_attempt IS NULL
