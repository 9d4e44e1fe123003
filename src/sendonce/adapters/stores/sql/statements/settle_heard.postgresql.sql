-- The provider's event is often faster than our settle: these are sent by its word.
UPDATE job_states j SET
    message_id = coalesce(j.message_id, o.message_id), settled_at = coalesce(j.settled_at, %(now)s),
    code = NULL, reason = NULL
FROM unnest(%(jobs)s::uuid[], %(attempts)s::int[], %(message_ids)s::text[]) AS o (id, attempt, message_id)
WHERE j.id = o.id AND j.attempt = o.attempt AND j.state = 'sent' AND j.accepted_attempt = j.attempt
RETURNING j.id::text, j.attempt
