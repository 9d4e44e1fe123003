-- Claim due jobs of one mailout; suppressed ones are skipped in the same breath.
WITH picked AS MATERIALIZED (
    SELECT j.id, EXISTS (
        SELECT 1 FROM suppressions s WHERE s.key = j.suppression_key AND s.tenant_id IN (j.tenant_id, '*')
    ) AS suppressed
    FROM message_jobs j
    WHERE j.mailout_id = %(mailout)s AND j.state = 'scheduled' AND j.due_at <= %(now)s
      AND EXISTS (
        SELECT 1 FROM mailouts m
        WHERE m.id = %(mailout)s AND m.status = 'sending' AND m.phase = 'running'
          AND NOT m.paused AND NOT m.cancelled)
    ORDER BY j.due_at, j.id
    LIMIT %(limit)s
    FOR UPDATE OF j SKIP LOCKED
), number AS MATERIALIZED (
    -- A sequence and not a row: no claim waits for another worker's commit.
    SELECT nextval('claim_seq') AS seq WHERE EXISTS (SELECT 1 FROM picked)
)
UPDATE message_jobs j SET
    state = CASE WHEN picked.suppressed THEN 'skipped' ELSE 'sending' END,
    attempt = j.attempt + (NOT picked.suppressed)::int,
    reason = CASE WHEN picked.suppressed THEN 'suppressed' END,
    code = NULL, message_id = NULL,
    worker_id = CASE WHEN picked.suppressed THEN j.worker_id ELSE %(worker)s::uuid END,
    claim_token = CASE WHEN picked.suppressed THEN j.claim_token ELSE %(token)s END,
    claimed_at = CASE WHEN picked.suppressed THEN j.claimed_at ELSE %(now)s END,
    settled_at = CASE WHEN picked.suppressed THEN %(now)s END,
    death_proof = NULL, death_proof_at = NULL, absence_proof = NULL
FROM picked
WHERE j.id = picked.id
RETURNING j.id::text, j.attempt, j.tries, j.recipient, j.fields, j.state, (SELECT seq FROM number)
