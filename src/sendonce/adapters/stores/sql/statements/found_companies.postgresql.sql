-- Make the companies whose domains were not known: tenant, now, sites
INSERT INTO companies (id, tenant_id, domain, website_url, language, facts, created_at, updated_at)
SELECT s.id, %(tenant)s, s.domain, s.url, s.language, s.facts, %(now)s, %(now)s
FROM jsonb_to_recordset(%(sites)s::jsonb) AS s (id uuid, domain text, url text, language text, facts jsonb)
JOIN company_domains d ON d.tenant_id = %(tenant)s AND d.domain = s.domain
WHERE d.company_id = s.id
