-- What changed in which series, since when, by how much and why, as it is known now?
-- A change that was said twice, first suspect and then confirmed, is one row: what was said last. Acknowledging an event
-- can give it another state.
CREATE VIEW changes AS
WITH last_said AS (
    SELECT *
    FROM change_points
    QUALIFY row_number() OVER (
        PARTITION BY source, series, metric, unit, event_id, effect_pct > 0
        ORDER BY said_at DESC, first_bad_at
    ) = 1
),
last_acknowledged AS (
    SELECT
        event_id,
        max(acknowledged_at) AS acknowledged_at,
        arg_max(acknowledged_by, acknowledged_at) AS acknowledged_by,
        arg_max(state, acknowledged_at) FILTER (state IS NOT NULL) AS state,
        arg_max(note, acknowledged_at) AS note
    FROM acknowledgements
    GROUP BY event_id
)
SELECT
    last_said.* EXCLUDE (night, state, cause_value),
    coalesce(last_acknowledged.state, last_said.state) AS state,
    last_said.state AS said_state,
    last_acknowledged.note,
    last_acknowledged.acknowledged_by,
    last_acknowledged.acknowledged_at,
    count(*) OVER (PARTITION BY event_id) AS event_series,
    last_said.night
FROM last_said
LEFT JOIN last_acknowledged USING (event_id)
ORDER BY first_bad_at, event_id, series, metric;
