-- Which machine types were available in which region, and why did attempts fail?
CREATE VIEW capacity AS
SELECT
    cloud,
    kind,
    region,
    is_spot,
    count(*) AS tries,
    count(*) FILTER (outcome = 'rented') AS rented,
    count(*) FILTER (outcome = 'rented') / count(*) AS rented_share,
    max(started_at) FILTER (outcome = 'rented') AS last_rented_at,
    max(started_at) AS last_tried_at,
    arg_max(reason, started_at) FILTER (outcome <> 'rented') AS last_reason,
    arg_max(usd_per_hour, started_at) AS last_usd_per_hour
FROM attempts
GROUP BY cloud, kind, region, is_spot
ORDER BY cloud, kind, region, is_spot;
