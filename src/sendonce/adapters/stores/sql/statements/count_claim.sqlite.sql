-- Count a claim in its worker's row. Where nothing is due, or the sender is held, nothing is counted, so a worker
-- that waits writes nothing.
-- ?1 worker  ?2 token  ?3 the expected count  ?4 count it anyway  ?5 JSON [dispatch, …] that are awake  ?6 now
-- ?7 sender
UPDATE workers SET claims = claims + 1, claim_token = ?2
WHERE id = ?1 AND claims = ?3 AND ended_at IS NULL
  AND (?4 OR EXISTS (
    SELECT 1 FROM json_each(?5) a JOIN job_states j ON j.dispatch_id = a.value
    WHERE j.state = 'scheduled' AND j.due_at <= ?6)
    AND NOT EXISTS (SELECT 1 FROM sender_holds h WHERE h.key = ?7 AND h.next_try_at > ?6))
RETURNING claims
