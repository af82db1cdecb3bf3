-- What have others printed, and does it pass the audit?
-- Each row is a line of catalog/published.csv.
-- model, precision and gpu are the catalogue's names; number is NULL where the source prints a range or no number.
CREATE VIEW published AS
SELECT * REPLACE (CAST(number AS DOUBLE) AS number)
FROM (
    VALUES
        {{ published | rows }}
) AS rows(
    line, source, source_date, model, precision, gpu, gpu_count, framework, framework_version, isl, osl, "load",
    metric, "value", number, unit, verdict, notes
);
