-- Make the companies whose domains were not known: tenant, now, sites
INSERT INTO companies (id, tenant_id, domain, name, website_url, language, facts, created_at, updated_at)
SELECT s.id, %(tenant)s, s.domain, s.name, s.url, s.language, '[]', %(now)s, %(now)s
FROM jsonb_to_recordset(%(sites)s::jsonb) AS s (id uuid, domain text, name text, url text, language text)
JOIN company_domains d ON d.tenant_id = %(tenant)s AND d.domain = s.domain
WHERE d.company_id = s.id
