-- With which engine, image and load client, each combination once?
CREATE VIEW dim_stack AS
SELECT
    {{ key(dimensions.stack) }} AS stack_key,
    {{ dimensions.stack | name }},
    min(night) AS first_night,
    max(night) AS last_night
FROM measurements
GROUP BY ALL;
