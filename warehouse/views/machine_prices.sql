-- What do the output tokens of each machine of a night cost, at the night's own price and at listed ones?
-- Each listed price is the newest of its provider for the same GPUs on demand; provider is NULL for the night's own.
CREATE VIEW machine_prices AS
WITH kinds(cloud, kind, gpu, gpu_count) AS (
    VALUES
        {{ kinds | rows }}
),
listed AS (
    SELECT provider, gpu, gpu_count, arg_max(usd_per_hour, seen_until) AS usd_per_hour, max(seen_until) AS price_date
    FROM (
        VALUES
        {{ listed | rows }}
    ) AS prices(provider, gpu, gpu_count, usd_per_hour, seen_until)
    GROUP BY provider, gpu, gpu_count
),
means AS (
    SELECT
        night,
        any_value(suite) AS suite,
        any_value(coalesce(replace(scenario, '@' || machine, ''), scenario)) AS scenario,
        any_value(machine) AS machine,
        any_value(machine_kind) AS machine_kind,
        count(*) AS repeats,
        exp(avg(ln(output_throughput_tok_per_s))) AS output_throughput_tok_per_s,
        avg(usd_per_hour) AS usd_per_hour,
        scenario_id
    FROM accepted
    WHERE output_throughput_tok_per_s > 0
    GROUP BY night, scenario_id
),
priced AS (
    SELECT means.*, NULL AS provider, NULL AS price_date
    FROM means
    WHERE usd_per_hour > 0
    UNION ALL BY NAME
    SELECT means.* REPLACE (listed.usd_per_hour AS usd_per_hour), listed.provider, listed.price_date
    FROM means
    JOIN (SELECT DISTINCT kind, gpu, gpu_count FROM kinds) AS kinds ON kinds.kind = means.machine_kind
    JOIN listed ON listed.gpu = kinds.gpu AND listed.gpu_count = kinds.gpu_count
)
SELECT
    night,
    suite,
    scenario,
    machine,
    machine_kind,
    provider,
    price_date,
    usd_per_hour,
    repeats,
    output_throughput_tok_per_s,
    usd_per_hour / (output_throughput_tok_per_s * 3600 / 1e6) AS usd_per_mtok_output,
    output_throughput_tok_per_s * 3600 / usd_per_hour AS output_tok_per_usd,
    scenario_id
FROM priced
ORDER BY night, scenario, machine, provider NULLS FIRST;
