-- One job a recipient, ever.
INSERT INTO message_jobs
    (id, tenant_id, mailout_id, recipient, recipient_key, suppression_key, fields, state, reason, due_at)
SELECT p.id, %(tenant)s, %(mailout)s, p.recipient, p.key, p.suppression_key, p.fields::jsonb, p.state, p.reason, %(due)s
FROM unnest(
    %(ids)s::uuid[], %(recipients)s::text[], %(keys)s::text[], %(suppression_keys)s::text[],
    %(fields)s::text[], %(states)s::text[], %(reasons)s::text[]
) AS p (id, recipient, key, suppression_key, fields, state, reason)
ON CONFLICT (mailout_id, recipient_key) DO NOTHING
