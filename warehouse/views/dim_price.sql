-- What did machines cost, from when to when?
-- A row is one price of a kind of machine in a region, with the nights in which it was paid.
CREATE VIEW dim_price AS
SELECT cloud, kind, region, is_spot, usd_per_hour, min(night) AS valid_from, max(night) AS valid_to
FROM leases
WHERE usd_per_hour IS NOT NULL
GROUP BY cloud, kind, region, is_spot, usd_per_hour
ORDER BY cloud, kind, region, valid_from;
