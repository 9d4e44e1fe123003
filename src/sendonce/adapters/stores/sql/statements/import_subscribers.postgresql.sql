-- Add people, refresh names and attributes, and leave the status alone.
INSERT INTO subscribers AS s
    (id, tenant_id, email, address_key, suppression_key, from_name, attributes, status, created_at, updated_at)
SELECT p.id, %(tenant)s, p.email, p.key, p.suppression_key, p.name, p.attributes::jsonb, p.status, %(now)s, %(now)s
FROM unnest(
    %(ids)s::uuid[], %(emails)s::text[], %(keys)s::text[], %(suppression_keys)s::text[],
    %(names)s::text[], %(attributes)s::text[], %(statuses)s::text[]
) AS p (id, email, key, suppression_key, name, attributes, status)
ON CONFLICT (tenant_id, address_key) DO UPDATE SET
    from_name = coalesce(excluded.from_name, s.from_name), attributes = excluded.attributes,
    updated_at = excluded.updated_at
WHERE s.attributes <> excluded.attributes
   OR s.from_name IS DISTINCT FROM coalesce(excluded.from_name, s.from_name)
