-- What are the values of each imported claim without the withdrawn ones?
CREATE VIEW standing_claims AS
SELECT {{ standing }}
FROM claims;
