-- The mailouts that may be claimed from, whether the whole ledger is halted, and whether the sender is held:
-- always at least one row. ?1 sender
SELECT m.id, l.halted, l.adoptions, EXISTS (SELECT 1 FROM sender_holds h WHERE h.key = ?1),
    l.fingerprint
FROM ledger l LEFT JOIN mailouts m
    ON m.status = 'sending' AND m.phase = 'running' AND NOT m.paused AND NOT m.cancelled
ORDER BY m.id
