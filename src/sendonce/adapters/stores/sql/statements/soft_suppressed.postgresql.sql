-- Who of these is suppressed for soft bounces.
SELECT s.key, s.tenant_id
FROM unnest(%(keys)s::text[], %(tenants)s::text[]) AS asked (key, tenant_id)
JOIN suppressions s ON s.key = asked.key AND s.tenant_id = asked.tenant_id
WHERE s.reason = 'bounce' AND s.note = %(note)s
