"""The claimed versions, modes, GPUs, labels, dates and flags against those that ran."""

from bench import evidence_columns as ev
from bench.audit.rules.rule import ZERO, Rule

PROVENANCE_RULES: tuple[Rule, ...] = (
    Rule(
        code="engine_version_conflict",
        column=ev.ENGINE_VERSION_SUFFIX,
        family="provenance",
        passing=ZERO,
        tolerated=None,
        sentence="{value:#engine version is|engine versions are} another build of the same release",
        origin="definition: what ran must be what is claimed; a development suffix only warns",
    ),
    Rule(
        code="engine_mode_conflict",
        column=ev.ENGINE_MODE_CONFLICTS,
        family="provenance",
        passing=ZERO,
        tolerated=ZERO,
        sentence="{value:#engine mode differs|engine modes differ} from the claim",
        origin="definition: what ran must be what is claimed",
    ),
    Rule(
        code="arch_conflict",
        column=ev.ARCH_CONFLICTS,
        family="provenance",
        passing=ZERO,
        tolerated=ZERO,
        sentence="{value:#GPU architecture differs|GPU architectures differ} from the claim",
        origin="definition: what ran must be what is claimed",
    ),
    Rule(
        code="label_conflict",
        column=ev.LABEL_CONFLICTS,
        family="provenance",
        passing=ZERO,
        tolerated=ZERO,
        sentence=("{value:#pair of names of the same thing disagrees|pairs of names of the same thing disagree}"),
        origin="definition: what ran must be what is claimed",
    ),
    Rule(
        code="flag_conflict",
        column=ev.FLAG_CONFLICTS,
        family="provenance",
        passing=ZERO,
        tolerated=ZERO,
        sentence=("{value:#setting that changes results differs|settings that change results differ} from the request"),
        origin="definition: what ran must be what is claimed",
    ),
    Rule(
        code="context_conflict",
        column=ev.CONTEXT_CONFLICTS,
        family="provenance",
        passing=ZERO,
        tolerated=None,
        sentence=(
            "{value:#option or context value contradicts|options or context values contradict} the file, whose value "
            "is used"
        ),
        origin="definition: what is passed with a file adds to it and never overrides it",
    ),
    Rule(
        code="timestamp_conflict",
        column=ev.TIMESTAMPS_APART_H,
        family="provenance",
        passing=(None, 24.0),
        tolerated=(None, 24.0),
        sentence="two dates of one measurement are {value:.1f} hours apart",
        origin="chosen by Nightbench: one measurement lies within one day",
    ),
    Rule(
        code="timestamp_conflict",
        column=ev.TIMESTAMPS_UNEXPLAINED_S,
        family="provenance",
        passing=ZERO,
        tolerated=None,
        sentence="two times of one measurement are {value:.0f} s further apart than it lasted",
        origin=(
            "chosen by Nightbench: a name often holds the start and a field the end, so the duration and ten"
            " minutes are allowed"
        ),
    ),
    Rule(
        code="timestamp_conflict",
        column=ev.END_BEFORE_START_S,
        family="provenance",
        passing=ZERO,
        tolerated=ZERO,
        sentence="the measurement ends {value:.0f} s before it starts",
        origin="arithmetic: an end is not before its start",
    ),
    Rule(
        code="timestamp_conflict",
        column=ev.DURATION_OUTSIDE_WINDOW_S,
        family="provenance",
        passing=ZERO,
        tolerated=None,
        sentence="the duration does not fit the time from start to end by {value:.0f} s",
        origin="arithmetic: the load lies between start and end; 2 s or 1 % for whole seconds, and a day for waits",
    ),
    Rule(
        code="revision_unpinned",
        column=ev.UNPINNED,
        family="provenance",
        passing=ZERO,
        tolerated=None,
        sentence="{value:#reference is not pinned and|references are not pinned and} can change",
        origin=("an image tag without a digest, or a branch of a model, names something else after its next push"),
    ),
    Rule(
        code="not_measured",
        column=ev.NOT_MEASURED,
        family="provenance",
        passing=ZERO,
        tolerated=ZERO,
        sentence="the value was not measured and cannot be a baseline",
        origin="definition: projections and estimates are not measurements",
    ),
)
