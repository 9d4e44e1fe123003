-- Note which search found these companies: query, now, companies
INSERT INTO company_queries (company_id, query_id, created_at)
SELECT value, :query, :now FROM json_each(:companies) WHERE true
ON CONFLICT DO NOTHING
