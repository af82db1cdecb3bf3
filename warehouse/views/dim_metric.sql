-- What is each metric, in which unit, which way is better, and from which change on does it count?
CREATE VIEW dim_metric AS
SELECT * REPLACE (CAST(min_effect AS DOUBLE) AS min_effect)
FROM (
    VALUES
        {{ metric_rows | rows }}
) AS metrics(metric, unit, direction, min_effect, meaning);
