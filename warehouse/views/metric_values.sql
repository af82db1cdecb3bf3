-- What is the value of each metric in each accepted run?
-- It selects from the table: to bind `accepted` with all its columns takes longer than most questions.
CREATE VIEW metric_values AS
SELECT night, scenario_id, scenario, lease_id, coalesce(is_first_after_start, false) AS is_first, metric, value
FROM (
    UNPIVOT (SELECT * FROM measurements WHERE verdict = 'accepted' AND is_control IS NOT TRUE)
    ON
        request_throughput_per_s,
        output_throughput_tok_per_s,
        steady_output_throughput_tok_per_s,
        ttft_mean_ms,
        ttft_p50_ms,
        ttft_p90_ms,
        ttft_p95_ms,
        ttft_p99_ms,
        ttft_p999_ms,
        tpot_mean_ms,
        tpot_p50_ms,
        tpot_p90_ms,
        tpot_p95_ms,
        tpot_p99_ms,
        itl_mean_ms,
        itl_p50_ms,
        itl_p90_ms,
        itl_p95_ms,
        itl_p99_ms,
        itl_p999_ms,
        itl_event_p50_ms,
        itl_event_p99_ms,
        e2el_mean_ms,
        e2el_p50_ms,
        e2el_p90_ms,
        e2el_p95_ms,
        e2el_p99_ms,
        usd_per_mtok_output,
        cold_start_s
    INTO NAME metric VALUE value
)
WHERE withdrawn IS NULL OR NOT list_contains(withdrawn, metric);
