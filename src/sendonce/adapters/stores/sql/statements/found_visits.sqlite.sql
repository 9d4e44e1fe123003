-- A new company waits for a visit to its site: tenant, now, sites
INSERT INTO processing_jobs (id, tenant_id, kind, dedupe_key, payload, due_at, created_at, updated_at)
SELECT json_extract(s.value, '$.task'), :tenant, 'visit', 'visit:' || d.company_id,
    json_object('company', d.company_id), :now, :now, :now
FROM json_each(:sites) AS s CROSS JOIN company_domains d -- in this order
    ON d.tenant_id = :tenant AND d.domain = json_extract(s.value, '$.domain')
WHERE d.company_id = json_extract(s.value, '$.id')
