-- Which of these attempts settle_accepted has just found and made sent. ?1 JSON [[job, attempt, …], …]
SELECT j.id, j.attempt
FROM json_each(?1) AS o JOIN message_jobs j ON j.id = o.value ->> 0 AND j.attempt = o.value ->> 1
WHERE j.state = 'sent'
