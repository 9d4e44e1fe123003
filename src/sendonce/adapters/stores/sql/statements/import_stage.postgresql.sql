CREATE TEMPORARY TABLE arriving (
    id uuid, email text, key text, suppression_key text, name text, attributes text, status text
) ON COMMIT DROP
