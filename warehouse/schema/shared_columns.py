"""Columns that several tables have in common."""

from warehouse.schema.column import Column

IDS = (
    Column("night", "text", "night of the measurement; partition of the lake", nullable=False),
    Column("run_id", "text", "night/scenario_id/repeat", nullable=False),
    Column(
        "scenario_id",
        "text",
        "hash of every setting that can change a number; runs with the same id can be compared",
        nullable=False,
    ),
    Column("repeat", "integer", "number of the repetition of the scenario, from 0", nullable=False, low=0),
)

PRICE = (Column("usd_per_hour", "number", "price of the machine", "USD/h", low=0),)

WITHDRAWN = Column(
    "withdrawn",
    "texts",
    "columns of this row that a finding about single metrics removes from the views for comparison",
)

FINDING = (
    Column("code", "text", "code of the rule", nullable=False),
    Column("family", "text", "family of the rule: arithmetic, client-server, ...", nullable=False),
    Column("severity", "text", "critical, warning or info", nullable=False),
    Column("scope", "text", "what the finding is about: row, metric or group", nullable=False),
    Column("status", "text", "PASS, WARN, FAIL or NOT-CHECKABLE", nullable=False),
    Column("observed", "number", "observed value of the evidence"),
    Column("passing_low", "number", "lowest value that passes"),
    Column("passing_high", "number", "highest value that passes"),
    Column("tolerated_low", "number", "lowest value that does not fail"),
    Column("tolerated_high", "number", "highest value that does not fail"),
    Column("message", "text", "the finding as a sentence", nullable=False),
)
