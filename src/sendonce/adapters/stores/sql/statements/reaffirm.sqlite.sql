-- A claimed attempt that may still leave.
SELECT 1
FROM job_states j JOIN planned_jobs p ON p.id = j.id JOIN dispatches d ON d.id = j.dispatch_id
WHERE j.id = ? AND j.attempt = ? AND j.state = 'sending' AND j.accepted_attempt IS NULL
  AND d.phase = 'running' AND NOT d.paused AND NOT d.cancelled
  AND NOT EXISTS (
    SELECT 1 FROM suppressions s WHERE s.key = p.suppression_key AND s.tenant_id IN (p.tenant_id, '*')
      AND NOT (s.reason = 'unsubscribed' AND s.tenant_id <> '*' AND d.asked_for))
  AND (SELECT halted FROM ledger) IS NULL
