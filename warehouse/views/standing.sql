-- What are the values of each measurement without the withdrawn ones?
CREATE VIEW standing AS
SELECT {{ standing }}
FROM measurements;
