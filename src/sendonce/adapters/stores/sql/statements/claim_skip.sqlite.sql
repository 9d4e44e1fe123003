-- The picked jobs whose address is suppressed. ?1 now  ?2 JSON [job, …]
UPDATE job_states SET
    state = 'skipped', reason = 'suppressed', settled_at = ?1, code = NULL, message_id = NULL,
    death_proof = NULL, death_proof_at = NULL, absence_proof = NULL
WHERE id IN (SELECT value FROM json_each(?2)) AND state = 'scheduled'
