-- Add people, refresh names and attributes, and leave the status alone. tenant, now, now, then the rows
INSERT INTO subscribers
    (id, tenant_id, email, address_key, suppression_key, from_name, attributes, status, created_at, updated_at)
SELECT column1, ?, column2, column3, column4, column5, column6, column7, ?, ?
FROM (VALUES (:rows)) WHERE true
ON CONFLICT (tenant_id, address_key) DO UPDATE SET
    from_name = coalesce(excluded.from_name, from_name), attributes = excluded.attributes,
    updated_at = excluded.updated_at
WHERE attributes <> excluded.attributes OR from_name IS NOT coalesce(excluded.from_name, from_name)
