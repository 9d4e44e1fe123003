-- Add people, refresh names and attributes, and leave the status alone.
INSERT INTO subscribers
    (id, tenant_id, email, address_key, suppression_key, from_name, attributes, status, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)
ON CONFLICT (tenant_id, address_key) DO UPDATE SET
    from_name = coalesce(excluded.from_name, from_name), attributes = excluded.attributes,
    updated_at = excluded.updated_at
WHERE attributes <> excluded.attributes OR from_name IS NOT coalesce(excluded.from_name, from_name)
