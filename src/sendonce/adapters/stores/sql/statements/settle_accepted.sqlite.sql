-- The usual outcome, a whole group at once. ?1 now  ?2 JSON [[job, attempt, message id], …]
-- 'sent' is among the states because the provider's event is often faster than our settle.
UPDATE message_jobs SET
    state = 'sent',
    message_id = CASE WHEN accepted_attempt = attempt THEN coalesce(message_id, o.value ->> 2) ELSE o.value ->> 2 END,
    -- Proof for an earlier attempt is here already: this one is a second copy.
    duplicate_at = CASE WHEN accepted_attempt < attempt THEN coalesce(duplicate_at, ?1) ELSE duplicate_at END,
    accepted_attempt = attempt,
    settled_at = coalesce(settled_at, ?1), code = NULL, reason = NULL
FROM json_each(?2) AS o
WHERE message_jobs.id = o.value ->> 0 AND message_jobs.attempt = o.value ->> 1
  AND message_jobs.state IN ('sending', 'in_doubt', 'sent')
