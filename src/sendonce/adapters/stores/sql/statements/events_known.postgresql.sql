-- The rows of these events.
SELECT event_id, natural_key FROM delivery_events WHERE event_id = ANY (%(ids)s::text[])
UNION ALL
SELECT event_id, natural_key FROM delivery_events WHERE natural_key = ANY (%(keys)s::text[])
