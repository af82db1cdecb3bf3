-- With which flags and parallelism, each combination once?
CREATE VIEW dim_config AS
SELECT
    {{ key(dimensions.config) }} AS config_key,
    {{ dimensions.config | name }},
    min(night) AS first_night,
    max(night) AS last_night
FROM measurements
GROUP BY ALL;
