-- Which numbers of the latest night differ most from the thirty nights before?
SELECT scenario, metric, round(latest, 3) AS latest, round(before, 3) AS before,
    round(100 * (ratio - 1), 1) AS change_percent, nights_before
FROM latest_vs_30
WHERE metric IN ('output_throughput_tok_per_s', 'ttft_p50_ms', 'tpot_p50_ms', 'e2el_p50_ms') AND before > 0
ORDER BY abs(ratio - 1) DESC, scenario, metric;
