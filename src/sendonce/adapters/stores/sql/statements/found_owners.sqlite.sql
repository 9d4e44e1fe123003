-- Whom each domain leads to: tenant, sites
SELECT d.domain, d.company_id, c.primary_id, d.company_id = json_extract(s.value, '$.id')
FROM json_each(:sites) AS s
CROSS JOIN company_domains d -- in this order
    ON d.tenant_id = :tenant AND d.domain = json_extract(s.value, '$.domain')
JOIN companies c ON c.id = d.company_id
