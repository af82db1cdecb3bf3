-- Which runs have no measurement, at which stage did they end, and why?
CREATE VIEW failures AS
SELECT night, scenario, "repeat", outcome, stage, reason, host, started_at, ended_at, run_id
FROM measurements
WHERE outcome <> 'measured'
ORDER BY night, "order", run_id;
