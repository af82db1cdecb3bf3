-- How do our numbers stand beside the published ones of the same model, lengths and load?
-- A ratio is NULL where the terms differ; terms has each difference, theirs first. A term that a source leaves out is equal.
CREATE VIEW beside_published AS
WITH metrics(metric, ours, scale) AS (
    VALUES
        ('output_throughput', 'output_throughput_tok_per_s', 1),
        ('throughput_gen', 'output_throughput_tok_per_s', 1),
        ('latency_avg', 'e2el_mean_ms', 1000)
),
ours AS (
    SELECT
        night,
        scenario_id,
        any_value(suite) AS suite,
        any_value(scenario) AS scenario,
        any_value(catalog_model) AS catalog_model,
        any_value(catalog_gpu) AS catalog_gpu,
        any_value(gpu_count) AS gpu_count,
        any_value("precision") AS "precision",
        any_value(isl) AS isl,
        any_value(osl) AS osl,
        any_value(if(arrivals = 'batch', request_count, concurrency_asked)) AS "load",
        any_value(engine || ' ' || coalesce(engine_version_found, driver_version, '')) AS engine,
        count(*) AS repeats,
        avg(output_throughput_tok_per_s) AS output_throughput_tok_per_s,
        avg(e2el_mean_ms) AS e2el_mean_ms
    FROM accepted
    GROUP BY night, scenario_id
),
measured AS (
    UNPIVOT ours ON output_throughput_tok_per_s, e2el_mean_ms INTO NAME column_name VALUE mean
),
paired AS (
    SELECT
        measured.*,
        published.source,
        published.metric AS published_metric,
        published."value" AS published,
        published.unit,
        published.verdict AS published_verdict,
        published.number * metrics.scale AS theirs,
        list_filter(
            [
                if(published.gpu <> coalesce(catalog_gpu, 'none'),
                    'GPU: ' || published.gpu || ' published, ' || coalesce(catalog_gpu, 'none') || ' here', NULL),
                if(published.gpu_count <> coalesce(measured.gpu_count, 0),
                    'GPU count: ' || published.gpu_count || ' published, ' || coalesce(measured.gpu_count, 0) || ' here',
                    NULL),
                if(published."precision" <> measured."precision",
                    'precision: ' || published."precision" || ' published, ' || measured."precision" || ' here', NULL)
            ],
            lambda term: term IS NOT NULL
        ) AS terms
    FROM measured
    JOIN metrics ON metrics.ours = measured.column_name
    JOIN published
        ON published.metric = metrics.metric
        AND published.model = measured.catalog_model
        AND published.isl = measured.isl
        AND published.osl = measured.osl
        AND coalesce(published."load", measured."load") = measured."load"
)
SELECT
    night,
    suite,
    scenario,
    scenario_id,
    column_name AS metric,
    repeats,
    mean AS ours,
    source,
    published_metric,
    published,
    unit,
    published_verdict,
    if(len(terms) = 0, mean / theirs, NULL) AS ratio,
    terms,
    engine
FROM paired
ORDER BY night, scenario, metric, source;
