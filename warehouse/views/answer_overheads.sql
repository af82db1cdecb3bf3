-- How much longer does a server take for answers that must have a form than for the same load without it?
-- Both ran on one server of one lease, their repeats in a drawn order. The name of the free twin has -free behind it,
-- before its variant, machine or power cap; until 2026-11-29 it ended in -free.
CREATE VIEW answer_overheads AS
WITH formed AS (
    SELECT DISTINCT night, scenario_id, server_id, answer_form
    FROM measurements
    WHERE answer_form IS NOT NULL
)
SELECT
    demanding.night,
    demanding.scenario,
    formed.answer_form,
    demanding.metric,
    demanding.lease_id,
    exp(demanding.mean_log) AS value,
    exp(free.mean_log) AS free_value,
    exp(demanding.mean_log - free.mean_log) AS ratio,
    demanding.repeats,
    free.repeats AS free_repeats,
    demanding.scenario_id,
    formed.server_id
FROM lease_means AS demanding
JOIN formed ON demanding.night = formed.night AND demanding.scenario_id = formed.scenario_id
JOIN lease_means AS free
    ON demanding.night = free.night
    AND demanding.metric = free.metric
    AND demanding.lease_id IS NOT DISTINCT FROM free.lease_id
    AND free.scenario IN (
        regexp_replace(demanding.scenario, '^[^@]*', {{ "\\0" ~ free }}), demanding.scenario || {{ free }}
    )
WHERE demanding.metric IN ('ttft_p50_ms', 'tpot_p50_ms', 'tpot_p99_ms')
ORDER BY demanding.night, demanding.scenario, demanding.metric;
