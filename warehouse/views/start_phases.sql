-- When was each phase of each server's start?
-- Its moments follow from the durations, in the order of the phases: no engine logs the moment of each.
CREATE VIEW start_phases AS
WITH phases AS (
    SELECT
        night,
        lease_id,
        server_id,
        server_started_at,
        engine,
        unnest({{ start_phases }}) AS phase,
        unnest([{{ start_phases | name }}]) AS duration_s,
        generate_subscripts({{ start_phases }}, 1) AS place
    FROM server_starts
),
ends AS (
    SELECT
        *,
        sum(duration_s) OVER (PARTITION BY night, lease_id, server_id, server_started_at ORDER BY place) AS end_s
    FROM phases
    WHERE duration_s IS NOT NULL
)
SELECT
    night,
    lease_id,
    server_id,
    server_started_at,
    engine,
    regexp_extract(phase, '^start_(.*)_s$', 1) AS phase,
    duration_s,
    server_started_at + to_microseconds(CAST(round((end_s - duration_s) * 1e6) AS BIGINT)) AS began_at,
    server_started_at + to_microseconds(CAST(round(end_s * 1e6) AS BIGINT)) AS ended_at
FROM ends
ORDER BY night, server_started_at, place;
