-- What is each run, by the keys of its dimensions?
CREATE VIEW fact_run AS
SELECT
    night,
    run_id,
    "repeat",
    lease_id,
    -- KEY host
    AS host_key,
    -- KEY platform
    AS platform_key,
    -- KEY stack
    AS stack_key,
    -- KEY model
    AS model_key,
    -- KEY config
    AS config_key,
    -- KEY scenario
    AS scenario_key,
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
