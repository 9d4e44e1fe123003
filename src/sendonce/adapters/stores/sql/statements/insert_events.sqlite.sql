INSERT INTO delivery_events (
    id, event_id, natural_key, kind, verdict, job_id, attempt, message_id, recipient,
    bounce_type, bounce_subtype, code, reason, occurred_at, received_at, raw
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
