-- What is the mean of the logarithm of each metric over the repeats on one lease?
-- The first run after a server's start counts only where a night has no other run of the scenario.
CREATE VIEW lease_means AS
SELECT
    night,
    scenario_id,
    max(scenario) AS scenario,
    metric,
    lease_id,
    count(*) AS repeats,
    avg(ln(value)) AS mean_log,
    coalesce(var_samp(ln(value)), 0) * (count(*) - 1) AS squares
FROM (
    SELECT *
    FROM metric_values
    WHERE value > 0
    QUALIFY NOT is_first OR bool_and(is_first) OVER (PARTITION BY night, scenario_id)
)
GROUP BY night, scenario_id, metric, lease_id;
