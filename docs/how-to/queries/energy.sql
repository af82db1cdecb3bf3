-- How much energy does an output token take?
SELECT scenario, gpus[1] AS gpu, gpu_count, round(median(joules_per_output_token), 4) AS joules_per_output_token,
    count(*) AS runs
FROM accepted
WHERE joules_per_output_token IS NOT NULL
GROUP BY scenario, gpu, gpu_count
ORDER BY scenario, gpu, gpu_count;
