-- Claim due jobs of one dispatch; suppressed ones are skipped in the same breath. {limit} is a number in the
-- text, and the picked are found again by arrays, in both tables: a plan that is kept knows then that they are
-- few. As a parameter and a join it reads the whole table from some size on.
-- Where a claim begins after a place (places.py), what comes before it is left out.
WITH picked AS MATERIALIZED (
    SELECT j.id, j.due_at, j.priority
    FROM job_states j
    WHERE j.dispatch_id = %(dispatch)s AND j.state = 'scheduled' AND j.due_at <= %(now)s
      AND EXISTS (
        SELECT 1 FROM dispatches d
        WHERE d.id = %(dispatch)s AND d.phase = 'running'
          AND NOT d.paused AND NOT d.cancelled)
      {after}
    ORDER BY j.due_at, j.priority, j.id
    LIMIT {limit}
    FOR UPDATE OF j SKIP LOCKED
), planned AS MATERIALIZED (
    SELECT p.id, p.letter_id, p.thread, p.recipient, p.fields, EXISTS (
        SELECT 1 FROM suppressions s WHERE s.key = p.suppression_key AND s.tenant_id IN (p.tenant_id, '*')
          AND NOT (s.reason = 'unsubscribed' AND s.tenant_id <> '*'
            AND (SELECT d.asked_for FROM dispatches d WHERE d.id = %(dispatch)s))
    ) AS suppressed
    FROM planned_jobs p WHERE p.id = ANY (ARRAY(SELECT id FROM picked))
), number AS MATERIALIZED (
    -- A sequence and not a row: no claim waits for another worker's commit.
    SELECT nextval('claim_seq') AS seq, last.* FROM (
        SELECT due_at::text AS last_due, priority AS last_priority, id::text AS last_id
        FROM picked ORDER BY due_at DESC, priority DESC, id DESC LIMIT 1) AS last
), skipped AS (
    UPDATE job_states SET
        state = 'skipped', reason = 'suppressed', settled_at = %(now)s, code = NULL, message_id = NULL,
        death_proof = NULL, death_proof_at = NULL, absence_proof = NULL
    WHERE id = ANY (ARRAY(SELECT id FROM planned WHERE suppressed))
    RETURNING id, state, attempt, tries
), taken AS (
    UPDATE job_states SET
        state = 'sending', attempt = attempt + 1, worker_id = %(worker)s, claim_token = %(token)s,
        claimed_at = %(now)s, settled_at = NULL, code = NULL, reason = NULL, message_id = NULL,
        death_proof = NULL, death_proof_at = NULL, absence_proof = NULL
    WHERE id = ANY (ARRAY(SELECT id FROM planned WHERE NOT suppressed))
    RETURNING id, state, attempt, tries
), moved AS MATERIALIZED (
    SELECT (SELECT count(*) FROM taken) AS taken, (SELECT count(*) FROM skipped) AS skipped, %(sent)s::bigint AS sent
), counted AS (
    -- The books (books.py), with what this turn has settled of the same dispatch. The whole ledger comes first.
    INSERT INTO dispatch_books AS b (dispatch_id, slot, scheduled, sending, sent, skipped)
    SELECT whose.id, pg_backend_pid() %% {slots}, -taken - skipped, taken - sent, sent, skipped
    FROM moved, (VALUES (1, %(ledger)s::uuid), (2, %(dispatch)s::uuid)) AS whose (place, id)
    WHERE taken + skipped + sent > 0 ORDER BY whose.place
    ON CONFLICT (dispatch_id, slot) DO UPDATE SET
        scheduled = b.scheduled + excluded.scheduled, sending = b.sending + excluded.sending,
        sent = b.sent + excluded.sent, skipped = b.skipped + excluded.skipped
)
SELECT id::text, state, letter_id::text, thread, attempt, tries, recipient, fields::text,
    seq, last_due, last_priority, last_id
FROM (TABLE skipped UNION ALL TABLE taken) AS claimed JOIN planned USING (id), number
