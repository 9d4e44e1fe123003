-- One job a recipient, ever.
INSERT INTO message_jobs
    (id, tenant_id, mailout_id, recipient, recipient_key, suppression_key, fields, state, reason, due_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (mailout_id, recipient_key) DO NOTHING
