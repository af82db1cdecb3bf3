-- What is the value of each metric on each lease, in a series that new versions, hosts and drivers do not end?
-- The value is the geometric mean of the lease's repeats that count, spread the standard deviation of their logarithms;
-- others_share is what noise may have cost beyond that. The other columns, of series_setups, explain the value.
CREATE VIEW series_nights AS
WITH known_controls AS (
    SELECT night, lease_id, avg(log_output_throughput) AS control
    FROM controls
    WHERE verdict = 'accepted'
    GROUP BY night, lease_id
)
SELECT
    setups.series,
    lease_means.metric,
    setups.night,
    setups.lease_id,
    setups.scenario_id,
    setups.measured_at,
    exp(lease_means.mean_log) AS value,
    sqrt(lease_means.squares / nullif(lease_means.repeats - 1, 0)) AS spread,
    lease_means.repeats AS repeat_count,
    known_controls.control,
    setups.* EXCLUDE (series, night, lease_id, scenario_id, measured_at)
FROM lease_means
JOIN series_setups AS setups
    ON lease_means.night = setups.night
    AND lease_means.scenario_id = setups.scenario_id
    AND lease_means.lease_id IS NOT DISTINCT FROM setups.lease_id
LEFT JOIN known_controls
    ON setups.night = known_controls.night
    AND setups.lease_id IS NOT DISTINCT FROM known_controls.lease_id
ORDER BY setups.series, lease_means.metric, setups.measured_at;
