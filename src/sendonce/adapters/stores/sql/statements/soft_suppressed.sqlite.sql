-- Who of these is suppressed for soft bounces. ?1 JSON [[key, tenant], …]  ?2 the note of such suppressions
SELECT s.key, s.tenant_id
FROM json_each(?1) AS asked JOIN suppressions s ON s.key = asked.value ->> 0 AND s.tenant_id = asked.value ->> 1
WHERE s.reason = 'bounce' AND s.note = ?2
