-- With which weights, each combination once?
CREATE VIEW dim_model AS
SELECT
    -- KEY model
    AS model_key,
    -- COLUMNS model
    , min(night) AS first_night,
    max(night) AS last_night
FROM measurements
GROUP BY ALL;
