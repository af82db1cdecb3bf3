-- What failed, at which stage, why, and when last?
SELECT stage, reason, count(*) AS runs, count(DISTINCT night) AS nights, max(night) AS last_night
FROM failures
GROUP BY stage, reason
ORDER BY runs DESC, stage, reason;
