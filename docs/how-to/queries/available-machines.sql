-- Which machines could be rented where, and at what price?
SELECT kind, region, tries, round(rented_share, 3) AS rented_share, last_usd_per_hour, last_reason
FROM capacity
ORDER BY rented_share DESC, tries DESC, kind, region;
