-- What stands of each imported claim, once the numbers that a finding withdrew are taken out?
CREATE VIEW standing_claims AS
SELECT * REPLACE (
    -- EACH NUMBER
)
FROM claims;
