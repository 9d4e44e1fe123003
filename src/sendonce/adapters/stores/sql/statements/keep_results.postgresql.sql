-- Results of searches: each once by operation and URL.
INSERT INTO serp_results (
    id, operation_id, tenant_id, url, domain, kind, position, title, snippet, language, metadata, created_at)
SELECT id, operation_id, tenant_id, url, domain, kind, position, title, snippet, language, metadata::jsonb,
    %(now)s
FROM unnest(
    %(ids)s::uuid[], %(operations)s::uuid[], %(tenants)s::text[], %(urls)s::text[], %(domains)s::text[],
    %(kinds)s::text[], %(positions)s::integer[], %(titles)s::text[], %(snippets)s::text[],
    %(languages)s::text[], %(metadata)s::text[]
) AS arriving (
    id, operation_id, tenant_id, url, domain, kind, position, title, snippet, language, metadata)
ON CONFLICT (operation_id, url) DO UPDATE SET
    domain = excluded.domain, kind = excluded.kind, position = excluded.position, title = excluded.title,
    snippet = excluded.snippet, language = excluded.language, metadata = excluded.metadata
