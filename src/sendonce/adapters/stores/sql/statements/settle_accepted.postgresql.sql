-- The usual outcome, a whole group at once.
-- 'sent' is among the states because the provider's event is often faster than our settle.
UPDATE message_jobs j SET
    state = 'sent',
    message_id = CASE WHEN j.accepted_attempt = j.attempt THEN coalesce(j.message_id, o.message_id) ELSE o.message_id END,
    -- Proof for an earlier attempt is here already: this one is a second copy.
    duplicate_at = CASE WHEN j.accepted_attempt < j.attempt THEN coalesce(j.duplicate_at, %(now)s) ELSE j.duplicate_at END,
    accepted_attempt = j.attempt,
    settled_at = coalesce(j.settled_at, %(now)s), code = NULL, reason = NULL
FROM unnest(%(jobs)s::uuid[], %(attempts)s::int[], %(message_ids)s::text[]) AS o (id, attempt, message_id)
WHERE j.id = o.id AND j.attempt = o.attempt AND j.state IN ('sending', 'in_doubt', 'sent')
