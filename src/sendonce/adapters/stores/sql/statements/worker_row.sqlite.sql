-- What is counted for a worker, and how it ended if it did. ?1 worker
SELECT claims, claim_token, CASE WHEN ended_at IS NOT NULL THEN coalesce("end", 'ended') END
FROM workers WHERE id = ?1
