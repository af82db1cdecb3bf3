-- What are the values of each imported claim without the withdrawn ones?
CREATE VIEW standing_claims AS
SELECT * REPLACE (
    {% for column in withdrawable %}
    CASE WHEN list_contains(withdrawn, {{ column }}) THEN NULL ELSE {{ column | name }} END AS {{ column | name }},
    {% endfor %}
)
FROM claims;
