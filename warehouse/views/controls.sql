-- What did the control measure on each lease?
CREATE VIEW controls AS
SELECT
    night,
    lease_id,
    host,
    verdict,
    output_throughput_tok_per_s,
    ln(output_throughput_tok_per_s) AS log_output_throughput,
    ttft_p50_ms,
    tpot_p50_ms,
    reason,
    engine_version_found,
    image_digest,
    model_sha256,
    scenario_id
FROM standing
WHERE is_control
ORDER BY night, started_at;
