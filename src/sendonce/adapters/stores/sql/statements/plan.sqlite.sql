-- One job a recipient, ever: what is planned of it. "own" is what a job has of its own, as JSON; null where all is
-- the dispatch's.
-- ?1 id  ?2 tenant  ?3 dispatch  ?4 recipient  ?5 its key  ?6 its suppression key  ?7 fields  ?8 own
INSERT INTO planned_jobs
    (id, tenant_id, dispatch_id, recipient, recipient_key, suppression_key, fields, letter_id, sender_id, thread)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 ->> 'letter_id', ?8 ->> 'sender_id', ?8 -> 'thread')
ON CONFLICT (dispatch_id, recipient_key) DO NOTHING
