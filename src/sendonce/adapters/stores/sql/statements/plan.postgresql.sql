-- One job a recipient, ever. "own" is what a job has of its own, as JSON; null where all is the dispatch's.
INSERT INTO message_jobs
    (id, tenant_id, dispatch_id, recipient, recipient_key, suppression_key, fields, state, reason, due_at,
     letter_id, sender_id, thread, priority)
SELECT p.id, %(tenant)s, %(dispatch)s, p.recipient, p.key, p.suppression_key, p.fields::jsonb, p.state, p.reason,
    coalesce((p.own ->> 'due_at')::timestamptz, %(due)s), (p.own ->> 'letter_id')::uuid, p.own ->> 'sender_id',
    p.own -> 'thread', coalesce((p.own ->> 'priority')::smallint, 0)
FROM (
    SELECT a.*, a.own_text::jsonb AS own
    FROM unnest(
        %(ids)s::uuid[], %(recipients)s::text[], %(keys)s::text[], %(suppression_keys)s::text[],
        %(fields)s::text[], %(states)s::text[], %(reasons)s::text[], %(owns)s::text[]
    ) AS a (id, recipient, key, suppression_key, fields, state, reason, own_text)
) AS p
ON CONFLICT (dispatch_id, recipient_key) DO NOTHING
