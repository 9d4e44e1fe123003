-- Two of the sender's dispatches that are awake, in no order; whether the whole ledger is halted, whether the sender is
-- held, and whether a dispatch that sleeps is due: always at least one row. Two wait in turn: see in_turn.
-- ?1 the sender's key  ?2 now  ?3 its id
SELECT d.id, d.tenant_id, d.letter_id, l.halted, l.adoptions,
    EXISTS (SELECT 1 FROM sender_holds h WHERE h.key = ?1), l.fingerprint,
    EXISTS (
        SELECT 1 FROM dispatches s
        WHERE s.phase = 'running' AND NOT s.awake AND NOT s.paused AND NOT s.cancelled AND s.due_from <= ?2)
FROM ledger l LEFT JOIN (
    SELECT id, tenant_id, letter_id FROM dispatches WHERE awake AND sender_id = ?3 LIMIT 2) d
