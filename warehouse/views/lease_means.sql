-- What is the mean of the logarithm of each metric over the repeats on one lease?
-- The first run after a server's start counts only where a night has no other run of the scenario.
CREATE VIEW lease_means AS
SELECT
    night,
    scenario_id,
    max(scenario) AS scenario,
    metric,
    lease_id,
    bool_or(is_noisy) AS is_noisy,
    count(*) AS repeats,
    avg(ln(value)) AS mean_log,
    coalesce(var_samp(ln(value)), 0) * (count(*) - 1) AS squares
FROM metric_values
LEFT JOIN (
    SELECT DISTINCT night AS warm_night, scenario_id AS warm_id
    FROM measurements
    WHERE {{ counts }} AND is_first_after_start IS NOT TRUE
) AS warm ON night = warm_night AND scenario_id = warm_id
WHERE value > 0 AND (NOT is_first OR warm_night IS NULL)
GROUP BY night, scenario_id, metric, lease_id;
