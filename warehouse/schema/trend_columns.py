"""The columns of `series_verdicts`, `change_points` and `acknowledgements`: the judgement of each night's series."""

from warehouse.schema.column import Column

_NIGHT = Column("night", "text", "night, or import of a history, that was judged", nullable=False)
_SAID_AT = Column("said_at", "moment", "when it was judged", nullable=False)
_SERIES = (
    Column("source", "text", "`nightbench`, or the source of an imported history", nullable=False),
    Column("series", "text", "name of the series", nullable=False),
    Column("metric", "text", "metric", nullable=False),
    Column("unit", "text", "unit, where the series states one", nullable=False),
)
_EVENT = Column("event_id", "text", "event; changes of one event have the same", nullable=False)

VERDICT_COLUMNS = (
    _NIGHT,
    _SAID_AT,
    Column("judge_version", "integer", "version of the judge's rule", low=1, nullable=False),
    Column("rerun_of", "text", "night whose suspects this night measured again"),
    *_SERIES,
    Column("judged_night", "text", "night that is judged; of a night that measures again, the one it repeats"),
    Column("measured_at", "moment", "start of that night's first run of the series", nullable=False),
    Column(
        "judgement",
        "text",
        "`equivalent`, `inconclusive`, `suspect`, `confirmed`, `host outlier` or `insufficient`",
        nullable=False,
    ),
    Column("reason", "text", "why it is not more certain"),
    Column("baseline_nights", "integer", "nights that it was compared with", low=0, nullable=False),
    Column("last_good", "text", "last night of the level that it was compared with"),
    Column("effect_pct", "number", "difference from that level", "%"),
    Column("ci_lo", "number", "lower end of the difference's 95 % interval", "%"),
    Column("ci_hi", "number", "upper end of the difference's 95 % interval", "%"),
    Column("p", "number", "probability of so large a difference without a change", low=0, high=1),
    Column("mde_pct", "number", "smallest change that would be found nine times of ten", "%", low=0),
    Column("min_effect_pct", "number", "smallest change that counts", "%", low=0, nullable=False),
    Column("control_slope", "number", "share of the control's difference that was taken off; 0: none", low=0),
    Column("rerun", "text", "night that measured it again"),
)

CHANGE_COLUMNS = (
    _NIGHT,
    _SAID_AT,
    *_SERIES,
    Column("kind", "text", "`step`, `drift`, `excursion` or `new_method`", nullable=False),
    Column("last_good", "text", "last valid night before the change", nullable=False),
    Column("first_bad", "text", "first night of the change", nullable=False),
    Column("first_bad_at", "moment", "time of that night", nullable=False),
    Column("until", "text", "last night of an excursion"),
    Column("effect_pct", "number", "size of the change", "%", nullable=False),
    Column("ci_lo", "number", "lower end of its 95 % interval", "%"),
    Column("ci_hi", "number", "upper end of its 95 % interval", "%"),
    Column("state", "text", "state when it was judged: `weak`, `suspect`, `confirmed`, `host` or `explained`"),
    Column("direction", "text", "`worse`, `better` or `unknown`", nullable=False),
    Column("cause", "text", "class of the cause", nullable=False),
    Column("cause_value", "text", "what the most telling field became"),
    Column("why", "text", "cause as a sentence", nullable=False),
    _EVENT,
)

ACKNOWLEDGEMENT_COLUMNS = (
    Column("night", "text", "always `acknowledged`; partition of the lake", nullable=False),
    _EVENT,
    Column("acknowledged_at", "moment", "when it was acknowledged", nullable=False),
    Column("acknowledged_by", "text", "who acknowledged it", nullable=False),
    Column("state", "text", "`confirmed`, `host`, `explained` or `rejected`; NULL: the state stays as judged"),
    Column("note", "text", "what they wrote"),
)
