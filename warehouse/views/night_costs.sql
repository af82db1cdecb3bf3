-- What did each night cost, which share was spent measuring, and what did an accepted measurement cost?
-- What is kept between nights counts for a day; measuring_share and usd_per_accepted are of the leases.
CREATE VIEW night_costs AS
SELECT
    runs.night,
    leases,
    open_leases,
    attempts,
    usd,
    usd_volume,
    usd_bucket,
    usd_image,
    usd_traffic,
    usd + usd_others AS usd_total,
    usd_measuring,
    usd_measuring / nullif(usd, 0) AS measuring_share,
    measurements,
    accepted,
    usd / nullif(accepted, 0) AS usd_per_accepted
FROM (
    SELECT night, count(*) AS measurements, count(*) FILTER (verdict = 'accepted') AS accepted
    FROM measurements
    GROUP BY night
) AS runs
LEFT JOIN (
    SELECT
        night,
        count(*) AS leases,
        count(*) FILTER (released_at IS NULL) AS open_leases,
        sum(attempt_count) AS attempts,
        -- NULL while one cost is unknown: a partial sum would look complete.
        CASE WHEN count(usd) = count(*) THEN sum(usd) END AS usd
    FROM leases
    GROUP BY night
) AS rentals ON runs.night = rentals.night
LEFT JOIN (
    SELECT night, CASE WHEN count(usd) = count(*) THEN sum(usd) END AS usd_measuring
    FROM stages
    WHERE stage = 'measure'
    GROUP BY night
) AS spent ON runs.night = spent.night
LEFT JOIN (
    SELECT
        night,
        sum(usd) FILTER (item = 'volume') AS usd_volume,
        sum(usd) FILTER (item = 'bucket') AS usd_bucket,
        sum(usd) FILTER (item = 'image') AS usd_image,
        sum(usd) FILTER (item = 'traffic') AS usd_traffic,
        CASE WHEN count(usd) = count(*) THEN sum(usd) END AS usd_others
    FROM other_costs
    GROUP BY night
) AS others ON runs.night = others.night
ORDER BY runs.night;
