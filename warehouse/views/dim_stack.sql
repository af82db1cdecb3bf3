-- With which engine, image and load client, each combination once?
CREATE VIEW dim_stack AS
SELECT
    -- KEY stack
    AS stack_key,
    -- COLUMNS stack
    , min(night) AS first_night,
    max(night) AS last_night
FROM measurements
GROUP BY ALL;
