-- A dispatch that nobody else holds.
SELECT 1 FROM dispatches WHERE id = %(dispatch)s FOR NO KEY UPDATE SKIP LOCKED
