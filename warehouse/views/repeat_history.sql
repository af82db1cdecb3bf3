-- How far apart are the repeats of a scenario within a lease, and how far apart are leases, over all nights without noise?
-- Both are standard deviations of logarithms, with their degrees of freedom.
CREATE VIEW repeat_history AS
WITH spreads AS (
    SELECT
        scenario_id,
        arg_max(scenario, night) AS scenario,
        metric,
        count(*) AS leases,
        sum(repeats)::BIGINT AS repeats,
        sqrt(sum(squares) / nullif(sum(repeats) - count(*), 0)) AS spread_within,
        var_samp(mean_log) AS variance_between,
        avg(1 / repeats) AS mean_share
    FROM lease_means
    WHERE NOT is_noisy
    GROUP BY scenario_id, metric
)
SELECT
    scenario_id,
    scenario,
    metric,
    leases,
    repeats,
    spread_within,
    repeats - leases AS degrees_within,
    -- The means of leases differ also by what their repeats do.
    CASE WHEN leases > 1 THEN sqrt(greatest(variance_between - spread_within ** 2 * mean_share, 0)) END AS spread_between,
    leases - 1 AS degrees_between
FROM spreads
ORDER BY scenario_id, metric;
