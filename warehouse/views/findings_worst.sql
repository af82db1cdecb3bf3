-- What is the worst finding of each run that has one?
CREATE VIEW findings_worst AS
SELECT night, scenario, findings."repeat", verdict, code, family, severity, status, observed, message, doubts, run_id
FROM (
    SELECT *, count(*) OVER (PARTITION BY night, run_id) AS doubts
    FROM findings
    WHERE severity <> 'info'
    -- 'critical' sorts before 'warning'; a finding of scope 'metric' decides no verdict.
    QUALIFY row_number() OVER (PARTITION BY night, run_id ORDER BY severity, scope = 'metric', code) = 1
) AS findings
JOIN (SELECT night, run_id, scenario, verdict FROM measurements) AS runs USING (night, run_id)
ORDER BY night, severity, scenario, findings."repeat";
