-- What are the main results of each run?
CREATE VIEW results AS
SELECT
    night,
    scenario,
    "repeat",
    verdict,
    concurrency_asked,
    request_rate_per_s_asked,
    completed,
    failed,
    ttft_p50_ms,
    ttft_p99_ms,
    tpot_p50_ms,
    tpot_p99_ms,
    itl_p99_ms,
    e2el_p50_ms,
    request_throughput_per_s,
    output_throughput_tok_per_s,
    usd_per_mtok_output,
    coalesce(reason, worst.message) AS reason,
    scenario_id
FROM standing
LEFT JOIN (
    SELECT night, run_id, first(message ORDER BY severity, code) AS message
    FROM findings
    WHERE severity <> 'info'
    GROUP BY night, run_id
) AS worst USING (night, run_id)
WHERE is_control IS NOT TRUE
ORDER BY night, scenario, scenario_id, "repeat";
