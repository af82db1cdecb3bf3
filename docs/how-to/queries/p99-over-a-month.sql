-- What was the p99 of time to first token over all accepted requests of a month?
SELECT
    left(requests.night, 7) AS month,
    accepted.scenario,
    count(*) AS requests,
    round(quantile_cont(requests.ttft_ms, 0.99), 2) AS ttft_p99_ms
FROM requests
JOIN accepted ON requests.night = accepted.night AND requests.run_id = accepted.run_id
WHERE requests.outcome = 'ok'
GROUP BY month, accepted.scenario
ORDER BY month, accepted.scenario;
