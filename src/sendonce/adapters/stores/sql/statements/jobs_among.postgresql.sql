-- Which of these jobs exist, locked or not.
SELECT id::text FROM message_jobs WHERE id = ANY (%(ids)s::uuid[])
