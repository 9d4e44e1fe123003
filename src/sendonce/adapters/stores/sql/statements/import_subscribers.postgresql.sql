-- Add people, refresh names and attributes, and leave the status alone. In the order of the addresses:
-- two imports at once then wait in line and not for each other. A row that was updated has an xmax.
WITH written AS (
    INSERT INTO subscribers AS s
        (id, tenant_id, email, address_key, suppression_key, from_name, attributes, status, created_at, updated_at)
    SELECT p.id, %(tenant)s, p.email, p.key, p.suppression_key, p.name, p.attributes::jsonb, p.status,
        %(now)s, %(now)s
    FROM arriving AS p
    ORDER BY p.key
    ON CONFLICT (tenant_id, address_key) DO UPDATE SET
        from_name = coalesce(excluded.from_name, s.from_name), attributes = excluded.attributes,
        updated_at = excluded.updated_at
    WHERE s.attributes <> excluded.attributes
       OR s.from_name IS DISTINCT FROM coalesce(excluded.from_name, s.from_name)
    RETURNING s.xmax = 0 AS inserted
)
SELECT count(*) FILTER (WHERE inserted), count(*) FILTER (WHERE NOT inserted) FROM written
