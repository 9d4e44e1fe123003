-- Each domain that leads to no company yet is the proposed company's own: tenant, now, sites
INSERT INTO company_domains (tenant_id, domain, company_id, how, created_at)
SELECT %(tenant)s, s.domain, s.id, 'own', %(now)s
FROM jsonb_to_recordset(%(sites)s::jsonb) AS s (id uuid, domain text)
ON CONFLICT DO NOTHING
