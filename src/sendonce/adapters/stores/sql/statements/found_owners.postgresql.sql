-- Whom each domain leads to: tenant, sites
SELECT d.domain, d.company_id::text, c.primary_id::text, d.company_id = s.id
FROM jsonb_to_recordset(%(sites)s::jsonb) AS s (id uuid, domain text)
JOIN company_domains d ON d.tenant_id = %(tenant)s AND d.domain = s.domain
JOIN companies c ON c.id = d.company_id
