-- How far apart are the repeats of a scenario within a lease, and how far apart are leases, over all nights?
-- Both are standard deviations of logarithms, with their degrees of freedom.
CREATE VIEW repeat_history AS
SELECT
    scenario_id,
    arg_max(scenario, night) AS scenario,
    metric,
    count(*) AS leases,
    sum(repeats)::BIGINT AS repeats,
    sqrt(sum(squares) / nullif(sum(repeats) - count(*), 0)) AS spread_within,
    (sum(repeats) - count(*))::BIGINT AS degrees_within,
    -- The means of leases differ also by what their repeats do.
    CASE
        WHEN count(*) > 1
        THEN sqrt(greatest(var_samp(mean_log) - spread_within ** 2 * avg(1 / repeats), 0))
    END AS spread_between,
    count(*) - 1 AS degrees_between
FROM lease_means
GROUP BY scenario_id, metric
ORDER BY scenario_id, metric;
