-- How far apart are the repeats of a scenario, and how far apart are leases?
SELECT scenario, metric, round(100 * spread_within, 2) AS within_percent, degrees_within,
    round(100 * spread_between, 2) AS between_percent, degrees_between
FROM repeat_history
WHERE metric IN ('output_throughput_tok_per_s', 'ttft_p50_ms', 'tpot_p50_ms') AND spread_within IS NOT NULL
ORDER BY scenario, metric;
