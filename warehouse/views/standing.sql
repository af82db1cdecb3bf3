-- What are the values of each measurement without the withdrawn ones?
CREATE VIEW standing AS
SELECT * REPLACE (
    {% for column in withdrawable %}
    CASE WHEN list_contains(withdrawn, {{ column }}) THEN NULL ELSE {{ column | name }} END AS {{ column | name }},
    {% endfor %}
)
FROM measurements;
