-- What is the value of each metric in each accepted run?
-- It selects these columns from the table: to bind all of them, or `accepted`, takes longer than most questions.
CREATE VIEW metric_values AS
SELECT night, scenario_id, scenario, lease_id, coalesce(is_first_after_start, false) AS is_first, metric, value
FROM (
    UNPIVOT (
        SELECT
            night,
            scenario_id,
            scenario,
            lease_id,
            is_first_after_start,
            withdrawn,
            {{ metrics | name }}
        FROM measurements
        WHERE verdict = 'accepted' AND is_control IS NOT TRUE
    )
    ON
        {{ metrics | name }}
    INTO NAME metric VALUE value
)
WHERE withdrawn IS NULL OR NOT list_contains(withdrawn, metric);
