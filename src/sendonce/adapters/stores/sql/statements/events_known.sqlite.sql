-- The rows of these events. ?1 JSON [event id, …]  ?2 JSON [natural key, …]
SELECT e.event_id, e.natural_key FROM json_each(?1) AS asked JOIN delivery_events e ON e.event_id = asked.value
UNION ALL
SELECT e.event_id, e.natural_key FROM json_each(?2) AS asked JOIN delivery_events e ON e.natural_key = asked.value
