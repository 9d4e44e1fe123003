-- A new company waits for a visit to its site: tenant, now, sites
INSERT INTO processing_jobs (id, tenant_id, kind, dedupe_key, payload, due_at, created_at, updated_at)
SELECT s.task, %(tenant)s, 'visit', 'visit:' || s.id, jsonb_build_object('company', s.id),
    %(now)s, %(now)s, %(now)s
FROM jsonb_to_recordset(%(sites)s::jsonb) AS s (id uuid, task uuid, domain text)
JOIN company_domains d ON d.tenant_id = %(tenant)s AND d.domain = s.domain
WHERE d.company_id = s.id
