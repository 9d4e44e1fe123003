-- The jobs that a group of events names, locked in the order of their ids.
SELECT
    j.id::text, j.tenant_id, j.recipient, j.recipient_key, j.suppression_key, j.dispatch_id::text, j.attempt,
    j.state, j.accepted_attempt, j.message_id, j.code, j.reason,
    j.settled_at, j.duplicate_at, j.send_event_at, j.delivered_at, j.bounced_at, j.complained_at, j.rejected_at
FROM message_jobs j
WHERE j.id = ANY (%(ids)s::uuid[])
ORDER BY j.id
FOR NO KEY UPDATE {waits}
