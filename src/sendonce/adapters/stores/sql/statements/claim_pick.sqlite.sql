-- Due jobs of one mailout and whether each is suppressed, as one JSON array.
-- ?1 limit  ?2 now  ?3 mailout
SELECT json_group_array(json_array(id, attempt, tries, recipient, json(fields), suppressed))
FROM (
    SELECT j.id, j.attempt, j.tries, j.recipient, j.fields, EXISTS (
        SELECT 1 FROM suppressions s WHERE s.key = j.suppression_key AND s.tenant_id IN (j.tenant_id, '*')
    ) AS suppressed
    FROM message_jobs j
    WHERE j.mailout_id = ?3 AND j.state = 'scheduled' AND j.due_at <= ?2
      AND EXISTS (
        SELECT 1 FROM mailouts m
        WHERE m.id = ?3 AND m.status = 'sending' AND m.phase = 'running' AND NOT m.paused AND NOT m.cancelled)
    ORDER BY j.due_at, j.id
    LIMIT ?1
)
