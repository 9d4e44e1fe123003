-- All that an event can change in its job, for a group of jobs that are locked.
UPDATE job_states j SET
    state = c.state, accepted_attempt = c.accepted_attempt, message_id = c.message_id, code = c.code,
    reason = c.reason, settled_at = c.settled_at, duplicate_at = c.duplicate_at,
    send_event_at = c.send_event_at, delivered_at = c.delivered_at, bounced_at = c.bounced_at,
    complained_at = c.complained_at, rejected_at = c.rejected_at
FROM jsonb_to_recordset(%(jobs)s::jsonb) AS c (
    id uuid, state text, accepted_attempt int, message_id text, code text, reason text,
    settled_at timestamptz, duplicate_at timestamptz, send_event_at timestamptz, delivered_at timestamptz,
    bounced_at timestamptz, complained_at timestamptz, rejected_at timestamptz)
WHERE j.id = c.id
