-- Which hosts are slower than the others at the same scenario?
WITH of_host AS (
    SELECT scenario_id, host, median(output_throughput_tok_per_s) AS tok_per_s, count(*) AS runs
    FROM accepted
    GROUP BY scenario_id, host
),
of_all AS (
    SELECT scenario_id, median(tok_per_s) AS typical_tok_per_s
    FROM of_host
    GROUP BY scenario_id
    HAVING count(*) > 1
)
SELECT of_host.host, round(median(of_host.tok_per_s / of_all.typical_tok_per_s), 3) AS share_of_typical,
    sum(of_host.runs) AS runs
FROM of_host
JOIN of_all ON of_host.scenario_id = of_all.scenario_id
GROUP BY of_host.host
ORDER BY share_of_typical, of_host.host;
