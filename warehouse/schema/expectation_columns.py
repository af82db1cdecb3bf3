"""The columns of `expectations`: one row per expectation about a table or view of a night."""

from warehouse.schema.column import Column
from warehouse.schema.shared_columns import IDS

EXPECTATION_COLUMNS = (
    IDS[0],
    Column("origin", "text", "`nightbench`, or `suite` where the suite's own file expects it", nullable=False),
    Column("table_name", "text", "table or view that it is about", nullable=False),
    Column("column_name", "text", "column that it is about, or several; NULL: the whole table"),
    Column("expectation", "text", "its type in great-expectations", nullable=False),
    Column("given", "text", "what else it is given, as JSON", nullable=False),
    Column("severity", "text", "critical, warning or info", nullable=False),
    Column(
        "status", "text", "PASS; FAIL where a critical one does not hold, WARN where another does not", nullable=False
    ),
    Column("row_count", "integer", "rows of the table in that night", nullable=False, low=0),
    Column("unexpected_count", "integer", "values that it does not hold of; NULL of one about a whole column", low=0),
    Column("observed", "text", "what great-expectations observed of a whole column or table"),
    Column("examples", "texts", "some of the unexpected values, each with what identifies its row"),
    Column("notes", "text", "what the expectation is for"),
    Column("error", "text", "reason why it could not be checked"),
)
