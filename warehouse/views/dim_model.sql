-- With which weights, each combination once?
CREATE VIEW dim_model AS
SELECT
    {{ key(dimensions.model) }} AS model_key,
    {{ dimensions.model | name }},
    min(night) AS first_night,
    max(night) AS last_night
FROM measurements
GROUP BY ALL;
