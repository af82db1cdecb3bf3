-- How often was a latency of a month's accepted runs in each bin of a histogram?
-- Bins add up over runs, so that a percentile of a month is within 7 % of the exact one.
CREATE VIEW monthly_histograms AS
SELECT
    month,
    scenario_id,
    any_value(scenario) AS scenario,
    metric,
    bin,
    4000 ** ((bin - 1) / 64) AS low_ms,
    4000 ** (bin / 64) AS high_ms,
    sum("count")::BIGINT AS "count"
FROM (
    SELECT month, scenario_id, scenario, metric, unnest(counts) AS "count", generate_subscripts(counts, 1) AS bin
    FROM (
        SELECT
            left(night, 7) AS month,
            scenario_id,
            scenario,
            unnest(['ttft', 'itl_event']) AS metric,
            unnest([
                if(list_contains(withdrawn, 'ttft_histogram'), NULL, ttft_histogram),
                if(list_contains(withdrawn, 'itl_event_histogram'), NULL, itl_event_histogram)
            ]) AS counts
        FROM measurements
        WHERE verdict = 'accepted' AND is_control IS NOT TRUE
    )
)
WHERE "count" > 0
GROUP BY month, scenario_id, metric, bin;
