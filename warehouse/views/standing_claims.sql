-- What are the values of each imported claim without the withdrawn ones?
-- The columns are listed, and those that are not declared follow: DuckDB takes ten times as long for * REPLACE.
CREATE VIEW standing_claims AS
SELECT
    {% for column in columns %}
    {% if column.is_withdrawable %}
    CASE WHEN list_contains(withdrawn, {{ column.name }}) THEN NULL ELSE {{ column.name | name }} END
        AS {{ column.name | name }},
    {% else %}
    {{ column.name | name }},
    {% endif %}
    {% endfor %}
    * EXCLUDE ({% for column in columns %}{{ column.name | name }}{% if not loop.last %}, {% endif %}{% endfor %})
FROM claims;
