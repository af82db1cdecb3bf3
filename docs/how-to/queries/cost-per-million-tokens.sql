-- What did a million output tokens cost in each night?
SELECT night, scenario, round(median(usd_per_mtok_output), 4) AS usd_per_mtok_output, count(*) AS runs
FROM accepted
WHERE usd_per_mtok_output IS NOT NULL
GROUP BY night, scenario
ORDER BY night, scenario;
