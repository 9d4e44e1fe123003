-- All that an event can change in its job.
UPDATE job_states SET
    state = ?, accepted_attempt = ?, message_id = ?, code = ?, reason = ?,
    settled_at = ?, duplicate_at = ?, send_event_at = ?, delivered_at = ?, bounced_at = ?, complained_at = ?,
    rejected_at = ?
WHERE id = ?
