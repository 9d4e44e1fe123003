-- What is counted for a worker, and how it ended if it did.
SELECT claims, claim_token, CASE WHEN ended_at IS NOT NULL THEN coalesce("end", 'ended') END
FROM workers WHERE id = %(worker)s
