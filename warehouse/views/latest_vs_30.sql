-- How does the latest night of each scenario compare with its previous thirty nights?
CREATE VIEW latest_vs_30 AS
WITH newest AS (
    -- A rank of every night of five years would take three times as long.
    SELECT
        scenario_id,
        arg_max(scenario, night) AS scenario,
        metric,
        max(night) AS night,
        arg_max(median, night, 31) AS medians
    FROM nightly_medians
    GROUP BY scenario_id, metric
),
compared AS (
    SELECT *, medians[1] AS latest, list_median(medians[2:]) AS before
    FROM newest
)
SELECT
    scenario_id,
    scenario,
    metric,
    night,
    latest,
    before,
    latest / nullif(before, 0) AS ratio,
    len(medians) - 1 AS nights_before
FROM compared
ORDER BY scenario, scenario_id, metric;
