-- The clock of a turn that only settles. A server set to synchronous_commit = off would confirm what it can
-- still lose, so it is set here, until the end of the transaction. The lock keeps a rotation of keys
-- (peppers.py) out of the turn.
SELECT clock_timestamp(), set_config('synchronous_commit', 'on', true), pg_advisory_xact_lock_shared(7337065265)
