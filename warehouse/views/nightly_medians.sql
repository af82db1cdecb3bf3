-- What was the median of each metric over a night's runs of a scenario that count?
CREATE VIEW nightly_medians AS
SELECT night, scenario_id, max(scenario) AS scenario, metric, median(value) AS median, count(*) AS runs
FROM metric_values
GROUP BY night, scenario_id, metric
ORDER BY night, scenario_id, metric;
