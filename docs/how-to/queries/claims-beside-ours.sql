-- How do imported claims compare with our runs of the same model?
SELECT accepted_claims.model, accepted_claims.gpu, accepted_claims.label,
    round(accepted_claims.output_throughput_tok_per_s, 1) AS claimed_tok_per_s,
    round(median(accepted.output_throughput_tok_per_s), 1) AS our_median_tok_per_s,
    count(*) AS our_runs
FROM accepted_claims
JOIN accepted ON accepted_claims.model = accepted.model
WHERE accepted_claims.output_throughput_tok_per_s IS NOT NULL
GROUP BY accepted_claims.model, accepted_claims.gpu, accepted_claims.label, accepted_claims.output_throughput_tok_per_s
ORDER BY accepted_claims.model, claimed_tok_per_s DESC;
