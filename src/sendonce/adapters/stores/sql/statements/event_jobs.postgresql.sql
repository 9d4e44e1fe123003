-- The jobs that a group of events names, locked in the order of their ids.
SELECT
    j.id::text, p.tenant_id, p.recipient, p.recipient_key, p.suppression_key, j.dispatch_id::text, j.attempt,
    j.state, j.accepted_attempt, j.message_id, j.code, j.reason,
    j.settled_at, j.duplicate_at, j.send_event_at, j.delivered_at, j.bounced_at, j.complained_at, j.rejected_at
FROM job_states j JOIN planned_jobs p ON p.id = j.id
WHERE j.id = ANY (%(ids)s::uuid[]) AND p.id = ANY (%(ids)s::uuid[])
ORDER BY j.id
FOR NO KEY UPDATE OF j {waits}
