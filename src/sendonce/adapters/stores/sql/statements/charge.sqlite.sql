-- A dispatch gave a group. ?1 dispatch
UPDATE dispatches SET served = served + 1.0 / weight WHERE id = ?1
