-- Of which series is each scenario on each lease, and what else is known of it?
-- series: model, precision, GPUs, parallelism, scenario, engine and load client, and what the suite declares.
CREATE VIEW series_setups AS
WITH setups AS (
    SELECT
        night,
        scenario_id,
        lease_id,
        min(started_at) AS measured_at,
        concat_ws(
            '/',
            any_value(model),
            any_value(precision),
            coalesce(any_value(gpu_count), 0) || 'x' || coalesce(any_value(gpus[1]), 'cpu'),
            'tp' || coalesce(any_value(tp_size), 1) || '-pp' || coalesce(any_value(pp_size), 1)
            || '-dp' || coalesce(any_value(dp_size), 1) || coalesce('-ep' || any_value(ep_size), ''),
            any_value(scenario),
            any_value(engine),
            any_value(driver)
        ) AS series,
        any_value(series_identity) AS identity,
        any_value(host) AS host,
        any_value(gpu_driver) AS driver,
        any_value(coalesce(image_digest, image)) AS image,
        any_value(engine_version_found) AS engine_version,
        any_value(coalesce(image_commit, engine_build)) AS engine_commit,
        any_value(coalesce(model_revision, model_sha256)) AS model_revision,
        any_value(engine_flags_sha256) AS flags,
        any_value(driver_version) AS client_version,
        any_value(concat_ws(' ', arrivals, burstiness_asked)) AS arrivals,  -- the seed is another each night
        CASE
            WHEN bool_and(coalesce(is_first_after_start, false)) THEN 'only the first after a server start'
            ELSE 'after a warm start'
        END AS repeats,
        max(method_version)::VARCHAR AS method_version,
        avg(CASE WHEN is_only_noisy THEN coalesce(other_cpu_share, 0) + coalesce(steal_share, 0) ELSE 0 END)
            AS others_share,
        any_value(concat_ws(
            ' ', prompts, 'isl', isl, 'osl', osl, 'concurrency', concurrency_asked, 'rate', request_rate_per_s_asked
        )) AS workload
    FROM counted
    GROUP BY night, scenario_id, lease_id
)
SELECT
    -- What the suite declares as identity is part of the name, with its value.
    concat_ws(
        '/',
        setups.series,
        CASE WHEN list_contains(identity, 'host') THEN 'host=' || setups.host END,
        CASE WHEN list_contains(identity, 'driver') THEN 'driver=' || setups.driver END,
        CASE WHEN list_contains(identity, 'image') THEN 'image=' || setups.image END,
        CASE WHEN list_contains(identity, 'engine_version') THEN 'engine_version=' || setups.engine_version END,
        CASE WHEN list_contains(identity, 'engine_commit') THEN 'engine_commit=' || setups.engine_commit END,
        CASE WHEN list_contains(identity, 'model_revision') THEN 'model_revision=' || setups.model_revision END,
        CASE WHEN list_contains(identity, 'flags') THEN 'flags=' || setups.flags END,
        CASE WHEN list_contains(identity, 'client_version') THEN 'client_version=' || setups.client_version END,
        CASE WHEN list_contains(identity, 'arrivals') THEN 'arrivals=' || setups.arrivals END,
        CASE WHEN list_contains(identity, 'bisect') THEN 'bisect' END
    ) AS series,
    setups.* EXCLUDE (series, identity)
FROM setups;
