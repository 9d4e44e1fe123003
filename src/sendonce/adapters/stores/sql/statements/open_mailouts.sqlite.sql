-- The mailouts that may be claimed from, and whether the whole ledger is halted: always at least one row.
SELECT m.id, l.halted
FROM ledger l LEFT JOIN mailouts m
    ON m.status = 'sending' AND m.phase = 'running' AND NOT m.paused AND NOT m.cancelled
ORDER BY m.id
