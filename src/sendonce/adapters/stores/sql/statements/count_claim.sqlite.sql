-- Count a claim in its worker's row. Where nothing is due, or the sender is held, nothing is counted, so a worker
-- that waits writes nothing.
-- ?1 worker  ?2 token  ?3 the expected count  ?4 count it anyway  ?5 now  ?6 sender
UPDATE workers SET claims = claims + 1, claim_token = ?2
WHERE id = ?1 AND claims = ?3 AND ended_at IS NULL
  AND (?4 OR EXISTS (
    SELECT 1 FROM mailouts m JOIN message_jobs j ON j.mailout_id = m.id
    WHERE m.status = 'sending' AND m.phase = 'running' AND NOT m.paused AND NOT m.cancelled
      AND j.state = 'scheduled' AND j.due_at <= ?5)
    AND NOT EXISTS (SELECT 1 FROM sender_holds h WHERE h.key = ?6 AND h.next_try_at > ?5))
RETURNING claims
