-- One job a recipient, ever. "own" is what a job has of its own, as JSON; null where all is the dispatch's.
-- ?1 id  ?2 recipient  ?3 its key  ?4 its suppression key  ?5 fields  ?6 state  ?7 reason  ?8 own
-- ?9 tenant  ?10 dispatch  ?11 due
INSERT INTO message_jobs
    (id, tenant_id, dispatch_id, recipient, recipient_key, suppression_key, fields, state, reason, due_at,
     letter_id, sender_id, thread, priority)
VALUES (?1, ?9, ?10, ?2, ?3, ?4, ?5, ?6, ?7, coalesce(?8 ->> 'due_at', ?11),
    ?8 ->> 'letter_id', ?8 ->> 'sender_id', ?8 -> 'thread', coalesce(?8 ->> 'priority', 0))
ON CONFLICT (dispatch_id, recipient_key) DO NOTHING
