-- On which hosts were runs measured, each combination once?
CREATE VIEW dim_host AS
SELECT
    {{ key(dimensions.host) }} AS host_key,
    {{ dimensions.host | name }},
    min(night) AS first_night,
    max(night) AS last_night
FROM measurements
GROUP BY ALL;
