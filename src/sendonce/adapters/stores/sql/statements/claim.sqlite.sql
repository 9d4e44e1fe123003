-- Claim due jobs of one mailout; suppressed ones are skipped in the same breath.
-- ?1 limit  ?2 now  ?3 mailout  ?4 worker  ?5 token
WITH picked AS MATERIALIZED (
    SELECT j.id, EXISTS (
        SELECT 1 FROM suppressions s WHERE s.key = j.suppression_key AND s.tenant_id IN (j.tenant_id, '*')
    ) AS suppressed
    FROM message_jobs j
    WHERE j.mailout_id = ?3 AND j.state = 'scheduled' AND j.due_at <= ?2
      AND EXISTS (
        SELECT 1 FROM mailouts m
        WHERE m.id = ?3 AND m.status = 'sending' AND m.phase = 'running' AND NOT m.paused AND NOT m.cancelled)
    ORDER BY j.due_at, j.id
    LIMIT ?1
)
UPDATE message_jobs SET
    state = CASE WHEN picked.suppressed THEN 'skipped' ELSE 'sending' END,
    attempt = attempt + NOT picked.suppressed,
    reason = CASE WHEN picked.suppressed THEN 'suppressed' END,
    code = NULL, message_id = NULL,
    worker_id = CASE WHEN picked.suppressed THEN worker_id ELSE ?4 END,
    claim_token = CASE WHEN picked.suppressed THEN claim_token ELSE ?5 END,
    claimed_at = CASE WHEN picked.suppressed THEN claimed_at ELSE ?2 END,
    settled_at = CASE WHEN picked.suppressed THEN ?2 END,
    death_proof = NULL, death_proof_at = NULL, absence_proof = NULL
FROM picked
WHERE message_jobs.id = picked.id
RETURNING id, mailout_id, attempt, tries, recipient, fields, state
