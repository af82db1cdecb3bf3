"""Columns that several tables have in common."""

from warehouse.schema.column import Column

IDS = (
    Column("night", "text", "the night it was measured in; the lake's partition", nullable=False),
    Column("run_id", "text", "night/scenario_id/repeat", nullable=False),
    Column("scenario_id", "text", "hash of everything that can move a number: equal means comparable", nullable=False),
    Column("repeat", "integer", "which try at the scenario, from 0", nullable=False, low=0),
)

PRICE = (Column("usd_per_hour", "number", "price of the machine", "USD/h", low=0),)

WITHDRAWN = Column(
    "withdrawn",
    "texts",
    "columns of this row that a finding about single metrics takes out of every view for comparison",
)

FINDING = (
    Column("code", "text", "the rule", nullable=False),
    Column("family", "text", "its kind: arithmetic, client-server, ...", nullable=False),
    Column("severity", "text", "critical, warning or info", nullable=False),
    Column("scope", "text", "row, metric or group: what it is about", nullable=False),
    Column("status", "text", "PASS, WARN, FAIL or NOT-CHECKABLE", nullable=False),
    Column("observed", "number", "the evidence"),
    Column("passing_low", "number", "lowest value that passes"),
    Column("passing_high", "number", "highest value that passes"),
    Column("tolerated_low", "number", "lowest value that does not fail"),
    Column("tolerated_high", "number", "highest value that does not fail"),
    Column("message", "text", "what it says, as a sentence", nullable=False),
)
