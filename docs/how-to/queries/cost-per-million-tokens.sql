-- What did a million output tokens cost in each of the newest ninety nights?
SELECT night, scenario, round(median(usd_per_mtok_output), 4) AS usd_per_mtok_output, count(*) AS runs
FROM accepted
WHERE usd_per_mtok_output IS NOT NULL
    AND night IN (SELECT night FROM leases GROUP BY night ORDER BY night DESC LIMIT 90)
GROUP BY night, scenario
ORDER BY night, scenario;
