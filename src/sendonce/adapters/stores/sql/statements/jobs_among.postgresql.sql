-- Which of these jobs exist, locked or not.
SELECT id::text FROM job_states WHERE id = ANY (%(ids)s::uuid[])
