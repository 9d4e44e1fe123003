-- The dispatches that are awake, in the order of fair share; whether the whole ledger is halted, whether the sender
-- is held, and whether a dispatch that sleeps is due: always at least one row.
-- ?1 sender  ?2 now  ?3 at most so many
SELECT d.id, d.tenant_id, d.letter_id, l.halted, l.adoptions,
    EXISTS (SELECT 1 FROM sender_holds h WHERE h.key = ?1), l.fingerprint,
    EXISTS (
        SELECT 1 FROM dispatches s
        WHERE s.phase = 'running' AND NOT s.awake AND NOT s.paused AND NOT s.cancelled AND s.due_from <= ?2)
FROM ledger l
LEFT JOIN tenants t
LEFT JOIN dispatches d ON d.id IN (
    SELECT a.id FROM dispatches a
    WHERE a.phase = 'running' AND a.tenant_id = t.id AND a.awake = true
    ORDER BY a.served, a.id LIMIT ?3)
ORDER BY d.id IS NULL, t.served, t.id, d.served, d.id
LIMIT ?3
