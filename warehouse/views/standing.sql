-- What stands of each measurement, once the numbers that a finding withdrew are taken out?
CREATE VIEW standing AS
SELECT * REPLACE (
    -- EACH NUMBER
)
FROM measurements;
