-- What was the p99 of time to first token over all accepted requests of a month?
WITH running AS (
    SELECT month, scenario, low_ms, high_ms, "count",
        sum("count") OVER (PARTITION BY month, scenario ORDER BY bin) AS up_to_here,
        0.99 * sum("count") OVER (PARTITION BY month, scenario) AS wanted,
        sum("count") OVER (PARTITION BY month, scenario) AS requests
    FROM monthly_histograms
    WHERE metric = 'ttft'
)
SELECT month, scenario, requests,
    round(low_ms * power(high_ms / low_ms, 1 - (up_to_here - wanted) / "count"), 2) AS ttft_p99_ms
FROM running
WHERE up_to_here >= wanted AND up_to_here - "count" < wanted
ORDER BY month, scenario;
