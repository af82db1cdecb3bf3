-- What is the value of each metric in each run, and is it valid?
-- A value that a finding withdrew is kept and not valid; so is each value of a run that does not count.
CREATE VIEW fact_measurement AS
SELECT
    night,
    run_id,
    "repeat",
    metric,
    value,
    (verdict = 'accepted' OR coalesce(is_only_noisy, false))
    AND (withdrawn IS NULL OR NOT list_contains(withdrawn, metric)) AS is_valid
FROM (
    UNPIVOT (SELECT * FROM measurements)
    ON
        {{ metrics | name }}
    INTO NAME metric VALUE value
);
