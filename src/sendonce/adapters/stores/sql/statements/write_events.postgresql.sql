-- A group of events, and all that they change in their jobs, which are locked. An event that is here already,
-- under its id or its natural key, is left out: how many were not?
WITH told AS (
    INSERT INTO delivery_events (
        id, event_id, natural_key, kind, verdict, job_id, attempt, message_id, recipient,
        bounce_type, bounce_subtype, code, reason, occurred_at, received_at, raw
    )
    SELECT
        id, event_id, natural_key, kind, verdict, job_id, attempt, message_id, recipient,
        bounce_type, bounce_subtype, code, reason, occurred_at, received_at, raw
    FROM jsonb_to_recordset(%(events)s::jsonb) AS e (
        id uuid, event_id text, natural_key text, kind text, verdict text, job_id uuid, attempt int, message_id text,
        recipient text, bounce_type text, bounce_subtype text, code text, reason text,
        occurred_at timestamptz, received_at timestamptz, raw jsonb)
    ON CONFLICT DO NOTHING
    RETURNING 1
), changed AS (
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
)
SELECT count(*) FROM told
