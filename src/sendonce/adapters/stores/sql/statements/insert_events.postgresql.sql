-- A group of events. One that is here already, under its id or its natural key, is left out.
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
