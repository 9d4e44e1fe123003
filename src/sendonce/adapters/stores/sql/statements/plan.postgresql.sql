-- One job a recipient, ever. "own" is what a job has of its own, as JSON; null where all is the dispatch's.
WITH given AS MATERIALIZED (
    SELECT a.*, a.own_text::jsonb AS own
    FROM unnest(
        %(ids)s::uuid[], %(recipients)s::text[], %(keys)s::text[], %(suppression_keys)s::text[],
        %(fields)s::text[], %(states)s::text[], %(reasons)s::text[], %(owns)s::text[]
    ) AS a (id, recipient, key, suppression_key, fields, state, reason, own_text)
), planned AS (
    INSERT INTO planned_jobs
        (id, tenant_id, dispatch_id, recipient, recipient_key, suppression_key, fields, letter_id, sender_id, thread)
    SELECT id, %(tenant)s, %(dispatch)s, recipient, key, suppression_key, fields::jsonb,
        (own ->> 'letter_id')::uuid, own ->> 'sender_id', own -> 'thread'
    FROM given
    ON CONFLICT (dispatch_id, recipient_key) DO NOTHING
    RETURNING id
)
INSERT INTO job_states (id, dispatch_id, state, reason, due_at, priority)
SELECT id, %(dispatch)s, state, reason, coalesce((own ->> 'due_at')::timestamptz, %(due)s),
    coalesce((own ->> 'priority')::smallint, 0)
FROM planned JOIN given USING (id)
