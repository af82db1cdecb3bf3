-- Where did the time of each server's start go?
-- One row a start; runs are the measurements on that server. The phases follow one another: with start_other_s, which no
-- line of the log explains, they are cold_start_s. In `start_phases` each phase is a row.
CREATE VIEW server_starts AS
SELECT
    night,
    lease_id,
    server_id,
    server_started_at,
    engine,
    engine_version_found,
    cold_start_s,
    compile_cache,
    {{ start_phases | name }},
    start_other_s,
    start_not_read,
    count(*) AS runs
FROM standing
WHERE server_started_at IS NOT NULL
GROUP BY ALL
ORDER BY night, server_started_at;
