-- The usual outcome, a whole group at once; which of them were found, unless all were.
WITH settled AS (
    UPDATE job_states j SET
        state = 'sent', message_id = o.message_id, accepted_attempt = j.attempt,
        settled_at = coalesce(j.settled_at, %(now)s), code = NULL, reason = NULL
    FROM unnest(%(jobs)s::uuid[], %(attempts)s::int[], %(message_ids)s::text[]) AS o (id, attempt, message_id)
    WHERE j.id = o.id AND j.attempt = o.attempt AND j.state = 'sending' AND j.accepted_attempt IS NULL
    RETURNING j.id, j.attempt
)
SELECT CASE WHEN count(*) < %(expected)s
    THEN coalesce(json_agg(json_build_array(id, attempt)), '[]') END FROM settled
