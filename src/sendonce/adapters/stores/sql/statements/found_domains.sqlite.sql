-- Each domain that leads to no company yet is the proposed company's own: tenant, now, sites
INSERT INTO company_domains (tenant_id, domain, company_id, how, created_at)
SELECT :tenant, json_extract(s.value, '$.domain'), json_extract(s.value, '$.id'), 'own', :now
FROM json_each(:sites) AS s WHERE true
ON CONFLICT DO NOTHING
