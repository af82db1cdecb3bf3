-- What do the repeats of a night say of each metric, how exactly, and how far apart are they?
-- mean is geometric; spreads are standard deviations of logarithms, so 0.01 is 1 %; low and high are the ends of the
-- 95 % interval of the mean by Student's t on logarithms, given the night's leases.
CREATE VIEW night_repeats AS
WITH spreads AS (
    SELECT
        night,
        scenario_id,
        max(scenario) AS scenario,
        metric,
        sum(repeats)::BIGINT AS repeats,
        count(*) AS leases,
        sum(repeats * mean_log) / sum(repeats) AS mean_log,
        sqrt(sum(squares) / nullif(sum(repeats) - count(*), 0)) AS spread_within,
        -- The means of leases differ also by what their repeats do.
        CASE
            WHEN count(*) > 1
            THEN sqrt(greatest(var_samp(mean_log) - spread_within ** 2 * avg(1 / repeats), 0))
        END AS spread_between
    FROM lease_means
    GROUP BY night, scenario_id, metric
)
SELECT
    night,
    scenario_id,
    scenario,
    metric,
    repeats,
    leases,
    exp(mean_log) AS mean,
    spread_within,
    spread_between,
    {{ t_975("repeats - leases") }} * spread_within / sqrt(repeats) AS half_width,
    exp(mean_log - half_width) AS low,
    exp(mean_log + half_width) AS high
FROM spreads
ORDER BY night, scenario_id, metric;
