-- Which workloads were measured, each combination once?
CREATE VIEW dim_scenario AS
SELECT
    {{ key(dimensions.scenario) }} AS scenario_key,
    {{ dimensions.scenario | name }},
    min(night) AS first_night,
    max(night) AS last_night
FROM measurements
GROUP BY ALL;
