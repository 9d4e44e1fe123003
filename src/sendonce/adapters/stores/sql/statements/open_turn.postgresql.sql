-- The clock, the mailouts that may be claimed from, whether the whole ledger is halted, and whether the sender is
-- held: always at least one row. A server set to synchronous_commit = off would confirm claims it can still lose,
-- so it is set here, until the end of the transaction. The lock keeps a rotation of keys (peppers.py) out of the
-- claim that follows.
SELECT set_config('synchronous_commit', 'on', true), clock_timestamp(), m.id::text, l.halted,
    EXISTS (SELECT 1 FROM sender_holds h WHERE h.key = %(sender)s),
    pg_advisory_xact_lock_shared(7337065265)
FROM ledger l LEFT JOIN mailouts m
    ON m.status = 'sending' AND m.phase = 'running' AND NOT m.paused AND NOT m.cancelled
ORDER BY m.id
