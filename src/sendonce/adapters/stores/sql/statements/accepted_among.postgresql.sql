-- Which of these attempts settle_accepted has just found and made sent.
SELECT j.id::text, j.attempt
FROM unnest(%(jobs)s::uuid[], %(attempts)s::int[]) AS o (id, attempt)
JOIN message_jobs j ON j.id = o.id AND j.attempt = o.attempt
WHERE j.state = 'sent'
