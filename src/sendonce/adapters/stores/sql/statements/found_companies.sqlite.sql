-- Make the companies whose domains were not known: tenant, now, sites
INSERT INTO companies (id, tenant_id, domain, website_url, language, facts, created_at, updated_at)
SELECT d.company_id, :tenant, d.domain, json_extract(s.value, '$.url'),
    json_extract(s.value, '$.language'), json_extract(s.value, '$.facts'), :now, :now
FROM json_each(:sites) AS s CROSS JOIN company_domains d -- in this order
    ON d.tenant_id = :tenant AND d.domain = json_extract(s.value, '$.domain')
WHERE d.company_id = json_extract(s.value, '$.id')
