-- What does benchmarking cost in a month, and what does an accepted run cost?
SELECT left(night, 7) AS month, count(*) AS nights, round(sum(usd), 2) AS usd,
    round(sum(usd_measuring) / nullif(sum(usd), 0), 3) AS measuring_share,
    round(sum(usd) / nullif(sum(accepted), 0), 4) AS usd_per_accepted
FROM night_costs
GROUP BY month
ORDER BY month;
