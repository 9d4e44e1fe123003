-- Note which search found these companies: query, now, companies
INSERT INTO company_queries (company_id, query_id, created_at)
SELECT value::uuid, %(query)s::uuid, %(now)s FROM jsonb_array_elements_text(%(companies)s::jsonb)
ON CONFLICT DO NOTHING
