-- The jobs that a group of events names. ?1 JSON [job, …]
SELECT
    j.id, j.tenant_id, j.recipient, j.recipient_key, j.suppression_key, j.dispatch_id, j.attempt,
    j.state, j.accepted_attempt, j.message_id, j.code, j.reason,
    j.settled_at, j.duplicate_at, j.send_event_at, j.delivered_at, j.bounced_at, j.complained_at, j.rejected_at
FROM json_each(?1) AS named JOIN message_jobs j ON j.id = named.value
