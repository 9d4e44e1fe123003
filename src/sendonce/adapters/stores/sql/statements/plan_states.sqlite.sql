-- Where jobs begin, those that "plan" made just now. "own" as there.
-- ?1 dispatch  ?2 due  ?3 JSON [[job, state, reason, own], …]
INSERT INTO job_states (id, dispatch_id, state, reason, due_at, priority)
SELECT p.id, ?1, n.value ->> 1, n.value ->> 2, coalesce(n.value ->> 3 ->> 'due_at', ?2),
    coalesce(n.value ->> 3 ->> 'priority', 0)
FROM json_each(?3) AS n CROSS JOIN planned_jobs p ON p.id = n.value ->> 0
