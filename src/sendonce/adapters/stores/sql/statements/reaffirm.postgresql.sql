-- A claimed attempt that may still leave.
SELECT 1
FROM message_jobs j JOIN dispatches d ON d.id = j.dispatch_id
WHERE j.id = %s AND j.attempt = %s AND j.state = 'sending' AND j.accepted_attempt IS NULL
  AND d.phase = 'running' AND NOT d.paused AND NOT d.cancelled
  AND NOT EXISTS (
    SELECT 1 FROM suppressions s WHERE s.key = j.suppression_key AND s.tenant_id IN (j.tenant_id, '*')
      AND NOT (s.reason = 'unsubscribed' AND s.tenant_id <> '*' AND d.asked_for))
  AND (SELECT halted FROM ledger) IS NULL
