-- How do the engine's versions compare at the same scenario name?
SELECT scenario, engine, engine_version_found, count(*) AS runs, min(night) AS first_night, max(night) AS last_night,
    round(median(output_throughput_tok_per_s), 1) AS output_throughput_tok_per_s,
    round(median(ttft_p50_ms), 2) AS ttft_p50_ms
FROM accepted
GROUP BY scenario, engine, engine_version_found
ORDER BY scenario, engine, first_night, engine_version_found;
