-- Open a turn that claims: count the claim in the worker's row, which stays locked until the end of the turn, and
-- give the clock, the dispatches of the sender that are awake in the order of fair share, whether one that sleeps is due, whether
-- the whole ledger is halted, and whether the sender is held: always at least one row. Where nothing is due, or the
-- sender is held, nothing is counted, so a worker that waits writes nothing; "anyway" counts all the same. For
-- set_config and the lock see open_settle. The fingerprint is compared here, for a pooler hides that the server has
-- become another one. {limit} is a number in the text: see claim. The place is where the last claim ended: mostly
-- something is due after it, and then no more is looked at. A plan that is made while there are few jobs is kept
-- when there are a million, so none may read a whole table: enable_seqscan is off until the end of the turn.
WITH sleepers AS MATERIALIZED (
    SELECT EXISTS (
        SELECT 1 FROM dispatches s
        WHERE s.phase = 'running' AND NOT s.awake AND NOT s.paused AND NOT s.cancelled
          AND s.due_from <= statement_timestamp()) AS due
), awake AS MATERIALIZED (
    SELECT d.id, d.tenant_id, d.letter_id, t.served AS tenant_served, d.served
    FROM tenant_turns t CROSS JOIN LATERAL (
        SELECT a.id, a.tenant_id, a.letter_id, a.served FROM dispatches a
        WHERE a.phase = 'running' AND a.tenant_id = t.tenant_id AND a.awake = true AND a.sender_id = t.sender_id
        ORDER BY a.served, a.id LIMIT {limit}) d
    WHERE t.sender_id = %(sender_id)s
    ORDER BY t.served, d.tenant_id, d.served, d.id LIMIT {limit}
), counted AS (
    UPDATE workers SET claims = claims + 1, claim_token = %(token)s
    WHERE id = %(worker)s AND claims = %(claims)s AND ended_at IS NULL
      AND (SELECT halted FROM ledger) IS NULL
      AND (%(anyway)s OR ((SELECT due FROM sleepers) OR EXISTS (
        SELECT 1 FROM awake a CROSS JOIN LATERAL (
            SELECT 1 FROM job_states j
            WHERE j.dispatch_id = a.id AND j.state = 'scheduled' AND j.due_at <= statement_timestamp()
              AND (j.due_at, j.priority, j.id)
                > (%(after_due)s::timestamptz, %(after_priority)s::smallint, %(after_id)s::uuid)
            ORDER BY j.due_at, j.priority, j.id LIMIT 1) due
        WHERE a.id = %(last)s::uuid) OR EXISTS (
        -- In the order of the index: a plan that is kept must not look for the first of them in the table.
        SELECT 1 FROM awake a CROSS JOIN LATERAL (
            SELECT 1 FROM job_states j
            WHERE j.dispatch_id = a.id AND j.state = 'scheduled' AND j.due_at <= statement_timestamp()
            ORDER BY j.due_at, j.priority, j.id LIMIT 1) due))
        AND NOT EXISTS (
        SELECT 1 FROM sender_holds h WHERE h.key = %(sender)s AND h.next_try_at > statement_timestamp()))
    RETURNING claims
)
SELECT a.id::text, a.tenant_id, a.letter_id::text, clock_timestamp(), l.halted, l.adoptions,
    EXISTS (SELECT 1 FROM sender_holds h WHERE h.key = %(sender)s), (SELECT claims FROM counted),
    (SELECT due FROM sleepers),
    set_config('synchronous_commit', 'on', true),
    set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true),
    pg_advisory_xact_lock_shared(7337065265), l.fingerprint, {fingerprint}
FROM ledger l LEFT JOIN awake a ON true
ORDER BY a.tenant_served, a.tenant_id, a.served, a.id
