-- What do the repeats of each sweep and search of a night say together?
-- value is their geometric mean; value_low and value_high are the ends of its 95 % interval by Student's t on logarithms,
-- NULL of fewer than two repeats that found a value: `searches` has the interval of each. is_whole: each found one.
CREATE VIEW search_repeats AS
WITH pooled AS (
    SELECT
        night,
        search,
        kind,
        count(*) AS repeats,
        count(value) AS found,
        avg(ln(value)) AS mean_log,
        stddev_samp(ln(value)) AS spread
    FROM searches
    GROUP BY night, search, kind
)
SELECT
    night,
    search,
    kind,
    repeats,
    found = repeats AS is_whole,
    exp(mean_log) AS value,
    spread,
    {{ t_975("found - 1") }} * spread / sqrt(found) AS half_width,
    exp(mean_log - half_width) AS value_low,
    exp(mean_log + half_width) AS value_high
FROM pooled
ORDER BY night, search;
