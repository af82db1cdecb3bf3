-- What happened in each conversation or agent session of a run?
-- One row a session of measured requests. waited_s is the sum of its requests' times: e2e_s less its pauses.
-- cached_share_planned and cached_share are parts of its prompt tokens: what they were made to find in the prefix cache,
-- and what the server's answers report, NULL if they do not.
CREATE VIEW sessions AS
SELECT
    night,
    run_id,
    scenario_id,
    repeat,
    session,
    count(*) AS turns,
    count(*) FILTER (WHERE outcome = 'ok') AS turns_done,
    min(send_s) AS begin_s,
    max(send_s + e2el_ms / 1000) - min(send_s) AS e2e_s,
    sum(e2el_ms) / 1000 AS waited_s,
    sum(input_tokens) AS input_tokens,
    sum(output_tokens) AS output_tokens,
    max(input_tokens) AS longest_input_tokens,
    sum(output_tokens) / nullif(sum(e2el_ms) / 1000, 0) AS tok_per_s,
    sum(cached_tokens_planned) / nullif(sum(input_tokens), 0) AS cached_share_planned,
    sum(cached_tokens) / nullif(sum(input_tokens), 0) AS cached_share
FROM requests
WHERE session IS NOT NULL
GROUP BY night, run_id, scenario_id, repeat, session
ORDER BY night, run_id, session;
