-- A claimed attempt that may still leave.
SELECT 1
FROM message_jobs j JOIN mailouts m ON m.id = j.mailout_id
WHERE j.id = ? AND j.attempt = ? AND j.state = 'sending' AND j.accepted_attempt IS NULL
  AND m.status = 'sending' AND NOT m.paused AND NOT m.cancelled
  AND NOT EXISTS (
    SELECT 1 FROM suppressions s WHERE s.key = j.suppression_key AND s.tenant_id IN (j.tenant_id, '*'))
  AND (SELECT halted FROM ledger) IS NULL
