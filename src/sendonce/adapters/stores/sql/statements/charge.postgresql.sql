-- A dispatch gave a group. Whoever is charging it at the same moment need not be waited for.
UPDATE dispatches SET served = served + 1.0 / weight
WHERE id = (SELECT id FROM dispatches WHERE id = %(dispatch)s FOR NO KEY UPDATE SKIP LOCKED)
