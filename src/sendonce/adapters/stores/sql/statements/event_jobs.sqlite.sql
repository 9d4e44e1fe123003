-- The jobs that a group of events names. ?1 JSON [job, …]
SELECT
    j.id, p.tenant_id, p.recipient, p.recipient_key, p.suppression_key, j.dispatch_id, j.attempt,
    j.state, j.accepted_attempt, j.message_id, j.code, j.reason,
    j.settled_at, j.duplicate_at, j.send_event_at, j.delivered_at, j.bounced_at, j.complained_at, j.rejected_at
FROM json_each(?1) AS named JOIN job_states j ON j.id = named.value JOIN planned_jobs p ON p.id = j.id
