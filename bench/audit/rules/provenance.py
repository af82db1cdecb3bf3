"""What a claim says of itself against what was found: versions, modes, GPUs, labels, dates, flags."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import ZERO, Rule

_TABLE = "the project's audit table, section 7"

PROVENANCE_RULES: tuple[Rule, ...] = (
    Rule(
        "engine_version_conflict",
        ev.ENGINE_VERSION_SUFFIX,
        "provenance",
        ZERO,
        None,
        "{value:#version of the engine is of the same release and another build|"
        "versions of the engine are of one release and other builds}",
        origin=f"{_TABLE}: a development suffix only warns",
    ),
    Rule(
        "engine_mode_conflict",
        ev.ENGINE_MODE_CONFLICTS,
        "provenance",
        ZERO,
        ZERO,
        "{value:#mode of the engine is|modes of the engine are} not what was claimed",
        origin=_TABLE,
    ),
    Rule(
        "arch_conflict",
        ev.ARCH_CONFLICTS,
        "provenance",
        ZERO,
        ZERO,
        "{value:#GPU architecture is|GPU architectures are} not what was claimed",
        origin=_TABLE,
    ),
    Rule(
        "label_conflict",
        ev.LABEL_CONFLICTS,
        "provenance",
        ZERO,
        ZERO,
        "{value:#pair of names of one thing disagrees|pairs of names of one thing disagree}",
        origin=_TABLE,
    ),
    Rule(
        "flag_conflict",
        ev.FLAG_CONFLICTS,
        "provenance",
        ZERO,
        ZERO,
        "{value:#setting that moves numbers is|settings that move numbers are} not what was asked",
        origin=_TABLE,
    ),
    Rule(
        "timestamp_conflict",
        ev.TIMESTAMPS_APART_H,
        "provenance",
        (None, 24.0),
        (None, 24.0),
        "two dates of one measurement are {value:.1f} hours apart",
        origin=_TABLE,
    ),
    Rule(
        "timestamp_conflict",
        ev.TIMESTAMPS_UNEXPLAINED_S,
        "provenance",
        ZERO,
        None,
        "two times of one measurement are {value:.0f} s further apart than it lasted",
        origin=f"{_TABLE}: its duration and ten minutes",
    ),
    Rule(
        "timestamp_conflict",
        ev.END_BEFORE_START_S,
        "provenance",
        ZERO,
        ZERO,
        "it ends {value:.0f} s before it starts",
        origin=_TABLE,
    ),
    Rule(
        "timestamp_conflict",
        ev.DURATION_OUTSIDE_WINDOW_S,
        "provenance",
        ZERO,
        None,
        "it lasted {value:.0f} s longer than from its start to its end",
        origin="arithmetic: what is measured lies between start and end; 2 s or 1 % for clocks told to the second",
    ),
    Rule(
        "revision_unpinned",
        ev.UNPINNED,
        "provenance",
        ZERO,
        None,
        "{value:#thing it names can be another|things it names can be others} tomorrow",
        origin=_TABLE,
    ),
    Rule(
        "not_measured",
        ev.NOT_MEASURED,
        "provenance",
        ZERO,
        ZERO,
        "it was not measured and can be no baseline",
        origin=_TABLE,
    ),
)
