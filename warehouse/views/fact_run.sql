-- What is each run, by the keys of its dimensions?
CREATE VIEW fact_run AS
SELECT
    night,
    run_id,
    "repeat",
    lease_id,
    {{ key(dimensions.host) }} AS host_key,
    {{ key(dimensions.platform) }} AS platform_key,
    {{ key(dimensions.stack) }} AS stack_key,
    {{ key(dimensions.model) }} AS model_key,
    {{ key(dimensions.config) }} AS config_key,
    {{ key(dimensions.scenario) }} AS scenario_key,
    is_first_after_start,
    is_control,
    outcome,
    stage,
    reason,
    verdict,
    started_at,
    ended_at,
    duration_s,
    usd_per_hour,
    method_version,
    nightbench_version,
    git_commit
FROM measurements;
