-- Open a turn that claims: count the claim in the worker's row, which stays locked until the end of the turn, and
-- give the clock, the mailouts that may be claimed from, whether the whole ledger is halted, and whether the sender
-- is held: always at least one row. Where nothing is due, or the sender is held, nothing is counted, so a worker
-- that waits writes nothing; "anyway" counts all the same. For set_config and the lock see open_settle.
-- The fingerprint is compared here, for a pooler hides that the server has become another one.
WITH counted AS (
    UPDATE workers SET claims = claims + 1, claim_token = %(token)s
    WHERE id = %(worker)s AND claims = %(claims)s AND ended_at IS NULL
      AND (SELECT halted FROM ledger) IS NULL
      AND (%(anyway)s OR EXISTS (
        -- In the order of the index: a plan that is kept must not look for the first of them in the table.
        SELECT 1 FROM mailouts m CROSS JOIN LATERAL (
            SELECT 1 FROM message_jobs j
            WHERE j.mailout_id = m.id AND j.state = 'scheduled' AND j.due_at <= statement_timestamp()
            ORDER BY j.due_at, j.id LIMIT 1) due
        WHERE m.status = 'sending' AND m.phase = 'running' AND NOT m.paused AND NOT m.cancelled)
        AND NOT EXISTS (
        SELECT 1 FROM sender_holds h WHERE h.key = %(sender)s AND h.next_try_at > statement_timestamp()))
    RETURNING claims
)
SELECT m.id::text, clock_timestamp(), l.halted, l.adoptions,
    EXISTS (SELECT 1 FROM sender_holds h WHERE h.key = %(sender)s), (SELECT claims FROM counted),
    set_config('synchronous_commit', 'on', true), pg_advisory_xact_lock_shared(7337065265),
    l.fingerprint, {fingerprint}
FROM ledger l LEFT JOIN mailouts m
    ON m.status = 'sending' AND m.phase = 'running' AND NOT m.paused AND NOT m.cancelled
ORDER BY m.id
