-- Which workloads were asked, each combination once?
CREATE VIEW dim_scenario AS
SELECT
    -- KEY scenario
    AS scenario_key,
    -- COLUMNS scenario
    , min(night) AS first_night,
    max(night) AS last_night
FROM measurements
GROUP BY ALL;
