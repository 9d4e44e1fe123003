-- Results of searches: each once by operation and URL.
INSERT INTO serp_results (
    id, operation_id, tenant_id, url, domain, kind, position, title, snippet, language, metadata, created_at)
VALUES (:rows)
ON CONFLICT (operation_id, url) DO UPDATE SET
    domain = excluded.domain, kind = excluded.kind, position = excluded.position, title = excluded.title,
    snippet = excluded.snippet, language = excluded.language, metadata = excluded.metadata
