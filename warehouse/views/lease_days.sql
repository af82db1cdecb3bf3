-- What did each lease cost on each UTC day?
-- Of a lease that rented several machines in turn, the last one counts.
CREATE VIEW lease_days AS
SELECT
    night,
    lease_id,
    machine_id,
    cloud,
    kind,
    strftime(began, '%Y-%m-%d') AS day,
    date_diff('millisecond', greatest(began, rented), least(began + INTERVAL 1 DAY, released)) / 60000 AS minutes,
    minutes / 60 * usd_per_hour AS usd
FROM (
    SELECT *, unnest(generate_series(date_trunc('day', rented), released, INTERVAL 1 DAY)) AS began
    FROM (
        SELECT *, rented_at AT TIME ZONE 'UTC' AS rented, released_at AT TIME ZONE 'UTC' AS released
        FROM leases
        WHERE rented_at IS NOT NULL AND released_at IS NOT NULL
    )
)
ORDER BY day, night, lease_id;
