-- How does the latest night of each scenario compare with its previous thirty nights?
CREATE VIEW latest_vs_30 AS
WITH ranked AS (
    SELECT *, row_number() OVER (PARTITION BY scenario_id, metric ORDER BY night DESC) AS age
    FROM nightly_medians
)
SELECT
    scenario_id,
    arg_min(scenario, age) AS scenario,
    metric,
    max(night) AS night,
    any_value(median) FILTER (age = 1) AS latest,
    median(median) FILTER (age BETWEEN 2 AND 31) AS before,
    latest / nullif(before, 0) AS ratio,
    count(*) FILTER (age BETWEEN 2 AND 31) AS nights_before
FROM ranked
GROUP BY scenario_id, metric
ORDER BY scenario, scenario_id, metric;
