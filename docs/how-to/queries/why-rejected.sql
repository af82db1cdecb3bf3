-- Which rules reject runs, how often, and what did the last finding say?
SELECT findings.code, count(*) AS findings, count(DISTINCT findings.night) AS nights,
    arg_max(findings.message, findings.night) AS last_message
FROM findings
JOIN measurements ON findings.night = measurements.night AND findings.run_id = measurements.run_id
WHERE measurements.verdict = 'rejected' AND findings.severity = 'critical'
GROUP BY findings.code
ORDER BY findings DESC, findings.code;
