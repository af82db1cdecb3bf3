-- What is the value of each metric in each run that counts: accepted, or suspect for nothing but noise on its host?
-- It selects these columns from the table: to bind all of them, or `accepted`, takes longer than most questions.
CREATE VIEW metric_values AS
SELECT night, scenario_id, scenario, lease_id, coalesce(is_first_after_start, false) AS is_first,
    coalesce(is_only_noisy, false) AS is_noisy, metric, value
FROM (
    UNPIVOT (
        SELECT
            night,
            scenario_id,
            scenario,
            lease_id,
            is_first_after_start,
            is_only_noisy,
            withdrawn,
            {{ metrics | name }}
        FROM measurements
        WHERE {{ counts }}
    )
    ON
        {{ metrics | name }}
    INTO NAME metric VALUE value
)
WHERE withdrawn IS NULL OR NOT list_contains(withdrawn, metric);
