-- What did each night cost, and what did an accepted measurement of it cost?
CREATE VIEW night_costs AS
SELECT
    night,
    leases,
    open_leases,
    usd,
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
        -- Unknown while one of them is: a sum of what is known would look like the whole.
        CASE WHEN count(usd) = count(*) THEN sum(usd) END AS usd
    FROM leases
    GROUP BY night
) AS rentals USING (night)
ORDER BY night;
