"""What a claim says of itself against what was found: versions, modes, GPUs, labels, dates, flags."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import ZERO, Rule

_TABLE = "the project's audit table, section 7"

PROVENANCE_RULES: tuple[Rule, ...] = (
    Rule(
        code="engine_version_conflict",
        column=ev.ENGINE_VERSION_SUFFIX,
        family="provenance",
        passing=ZERO,
        tolerated=None,
        sentence=(
            "{value:#version of the engine is of the same release and another build|"
            "versions of the engine are of one release and other builds}"
        ),
        origin=f"{_TABLE}: a development suffix only warns",
    ),
    Rule(
        code="engine_mode_conflict",
        column=ev.ENGINE_MODE_CONFLICTS,
        family="provenance",
        passing=ZERO,
        tolerated=ZERO,
        sentence="{value:#mode of the engine is|modes of the engine are} not what was claimed",
        origin=_TABLE,
    ),
    Rule(
        code="arch_conflict",
        column=ev.ARCH_CONFLICTS,
        family="provenance",
        passing=ZERO,
        tolerated=ZERO,
        sentence="{value:#GPU architecture is|GPU architectures are} not what was claimed",
        origin=_TABLE,
    ),
    Rule(
        code="label_conflict",
        column=ev.LABEL_CONFLICTS,
        family="provenance",
        passing=ZERO,
        tolerated=ZERO,
        sentence="{value:#pair of names of one thing disagrees|pairs of names of one thing disagree}",
        origin=_TABLE,
    ),
    Rule(
        code="flag_conflict",
        column=ev.FLAG_CONFLICTS,
        family="provenance",
        passing=ZERO,
        tolerated=ZERO,
        sentence="{value:#setting that moves numbers is|settings that move numbers are} not what was asked",
        origin=_TABLE,
    ),
    Rule(
        code="timestamp_conflict",
        column=ev.TIMESTAMPS_APART_H,
        family="provenance",
        passing=(None, 24.0),
        tolerated=(None, 24.0),
        sentence="two dates of one measurement are {value:.1f} hours apart",
        origin=_TABLE,
    ),
    Rule(
        code="timestamp_conflict",
        column=ev.TIMESTAMPS_UNEXPLAINED_S,
        family="provenance",
        passing=ZERO,
        tolerated=None,
        sentence="two times of one measurement are {value:.0f} s further apart than it lasted",
        origin=f"{_TABLE}: its duration and ten minutes",
    ),
    Rule(
        code="timestamp_conflict",
        column=ev.END_BEFORE_START_S,
        family="provenance",
        passing=ZERO,
        tolerated=ZERO,
        sentence="it ends {value:.0f} s before it starts",
        origin=_TABLE,
    ),
    Rule(
        code="timestamp_conflict",
        column=ev.DURATION_OUTSIDE_WINDOW_S,
        family="provenance",
        passing=ZERO,
        tolerated=None,
        sentence="it lasted {value:.0f} s longer than from its start to its end",
        origin="arithmetic: what is measured lies between start and end; 2 s or 1 % for clocks told to the second",
    ),
    Rule(
        code="revision_unpinned",
        column=ev.UNPINNED,
        family="provenance",
        passing=ZERO,
        tolerated=None,
        sentence="{value:#thing it names can be another|things it names can be others} tomorrow",
        origin=_TABLE,
    ),
    Rule(
        code="not_measured",
        column=ev.NOT_MEASURED,
        family="provenance",
        passing=ZERO,
        tolerated=ZERO,
        sentence="it was not measured and can be no baseline",
        origin=_TABLE,
    ),
)
