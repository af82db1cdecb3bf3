-- What did each stage and each scenario of a night cost?
CREATE VIEW stage_costs AS
SELECT
    night,
    stage,
    scenario,
    count(*) AS times,
    sum(duration_s) / 60 AS minutes,
    sum(stages.usd) AS usd,
    min(stages.started_at) AS began_at
FROM stages
LEFT JOIN (SELECT night, run_id, scenario FROM measurements) AS runs USING (night, run_id)
GROUP BY night, stage, scenario
ORDER BY night, began_at, stage, scenario;
