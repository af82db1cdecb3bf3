-- How do two machines of a night compare, scenario by scenario and metric by metric?
-- ratio is the geometric mean on machine_a over that on machine_b. ratio_low and ratio_high are the ends of its 95 %
-- interval by Welch's t on logarithms: the repeats of two machines are not paired. refused names the terms that differ
-- and forbid a comparison; the ratio is NULL then.
CREATE VIEW machine_pairs AS
WITH terms AS (
    SELECT
        night,
        scenario_id,
        any_value(suite) AS suite,
        any_value(machine) AS machine,
        any_value(replace(scenario, '@' || machine, '')) AS scenario,
        any_value(concat_ws(
            ' ',
            coalesce(isl, 0),
            coalesce(osl, 0),
            coalesce(concurrency_asked, 0),
            coalesce(request_rate_per_s_asked, 0),
            coalesce(arrivals, ''),
            coalesce(burstiness_asked, 1),
            coalesce(prompts, ''),
            coalesce(prompt_form, ''),
            coalesce(request_count, 0),
            coalesce(warmup_count, 0)
        )) AS workload,
        any_value(model_source) AS model_source,
        any_value(model_sha256) AS model_sha256,
        any_value("precision") AS "precision",
        any_value(driver) AS driver,
        any_value(driver_version) AS driver_version,
        any_value(method_version) AS method_version
    FROM accepted
    WHERE machine IS NOT NULL
    GROUP BY night, scenario_id
),
values_of AS (
    SELECT
        terms.*,
        metric,
        mean,
        repeats,
        nullif(repeats - leases, 0) AS degrees,
        spread_within ** 2 / repeats AS squared_error
    FROM night_repeats
    JOIN terms ON terms.night = night_repeats.night AND terms.scenario_id = night_repeats.scenario_id
),
pairs AS (
    SELECT
        a.night,
        a.suite,
        a.scenario,
        a.metric,
        a.machine AS machine_a,
        b.machine AS machine_b,
        a.mean AS value_a,
        b.mean AS value_b,
        a.repeats AS repeats_a,
        b.repeats AS repeats_b,
        nullif(concat_ws(
            '; ',
            CASE WHEN a.workload IS DISTINCT FROM b.workload THEN 'the workload differs' END,
            CASE WHEN a.model_source IS DISTINCT FROM b.model_source THEN 'the model differs' END,
            CASE WHEN a.model_sha256 IS DISTINCT FROM b.model_sha256 THEN 'the weights differ' END,
            CASE WHEN a."precision" IS DISTINCT FROM b."precision" THEN 'the precision differs' END,
            CASE WHEN a.driver IS DISTINCT FROM b.driver THEN 'the load driver differs' END,
            CASE WHEN a.driver_version IS DISTINCT FROM b.driver_version THEN 'the load driver''s version differs' END,
            CASE WHEN a.method_version IS DISTINCT FROM b.method_version THEN 'the method differs' END
        ), '') AS refused,
        sqrt(a.squared_error + b.squared_error) AS error,
        greatest(1, floor(
            (a.squared_error + b.squared_error) ** 2
            / nullif(a.squared_error ** 2 / a.degrees + b.squared_error ** 2 / b.degrees, 0)
        ))::BIGINT AS degrees,
        a.scenario_id AS scenario_id_a,
        b.scenario_id AS scenario_id_b
    FROM values_of AS a
    JOIN values_of AS b
        ON a.night = b.night AND a.scenario = b.scenario AND a.metric = b.metric AND a.machine < b.machine
)
SELECT
    night,
    suite,
    scenario,
    metric,
    machine_a,
    machine_b,
    value_a,
    value_b,
    repeats_a,
    repeats_b,
    CASE WHEN refused IS NULL THEN value_a / value_b END AS ratio,
    ratio * exp(-half_width) AS ratio_low,
    ratio * exp(half_width) AS ratio_high,
    refused,
    scenario_id_a,
    scenario_id_b
FROM (
    SELECT *, {{ t_975("degrees") }} * error AS half_width
    FROM pairs
)
ORDER BY night, scenario, metric, machine_a, machine_b;
