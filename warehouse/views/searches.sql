-- What did each sweep and search find, in how many probes?
CREATE VIEW searches AS
SELECT
    night, search, repeat, kind, value, value_low, value_high,
    count(*) AS probes, sum(request_count) AS requests, is_over, why
FROM search_probes
GROUP BY ALL
ORDER BY night, search, repeat;
