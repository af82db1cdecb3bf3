-- With which drivers, firmware and kernel, each combination once?
CREATE VIEW dim_platform AS
SELECT
    {{ key(dimensions.platform) }} AS platform_key,
    {{ dimensions.platform | name }},
    min(night) AS first_night,
    max(night) AS last_night
FROM measurements
GROUP BY ALL;
