-- The picked jobs are the worker's. ?1 now  ?2 worker  ?3 token  ?4 JSON [job, …]
UPDATE job_states SET
    state = 'sending', attempt = attempt + 1, worker_id = ?2, claim_token = ?3, claimed_at = ?1,
    settled_at = NULL, code = NULL, reason = NULL, message_id = NULL,
    death_proof = NULL, death_proof_at = NULL, absence_proof = NULL
WHERE id IN (SELECT value FROM json_each(?4)) AND state = 'scheduled'
