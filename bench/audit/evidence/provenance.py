"""What a claim says of itself against what was found, or against what it says in another place."""

import re
from collections.abc import Callable, Iterable

from bench import evidence_columns as ev
from bench.audit.claim import Claim, ClaimedConfig, Pair
from bench.audit.evidence.evidence import EvidenceByColumn, Observed, Subject
from bench.audit.evidence.labels import label_pairs
from bench.audit.evidence.self_contradictions import said_twice
from bench.audit.evidence.timestamps import timestamps
from bench.catalog.rows import Gpu

_RELEASE = re.compile(r"\d+(?:\.\d+)+|\d+")
_BRANCHES = frozenset({"main", "master", "head", "latest", "dev", "nightly"})
# What compilers call the GPUs of the catalogue's architectures.
_TARGETS = {"CDNA2": "gfx90a", "CDNA3": "gfx942", "CDNA4": "gfx950", "RDNA3": "gfx1100"}
_TARGETS |= {"Volta": "sm70", "Turing": "sm75", "Ampere": "sm80", "Ampere RTX": "sm86", "Ada": "sm89", "Hopper": "sm90"}
_TARGETS |= {"Blackwell": "sm100", "Blackwell Ultra": "sm103", "Blackwell RTX": "sm120"}

Same = Callable[[Pair], bool]


def provenance_conflicts(claim: Claim, subject: Subject) -> EvidenceByColumn:
    """Conflicts by sort, 0 where all agree; a sort without a stated value does not apply."""
    pairs = (*claim.pairs, *label_pairs(claim, subject), *said_twice(claim, subject.gpu))
    return {
        **_conflicts(ev.ENGINE_VERSION_CONFLICT, pairs, "engine_version", _same_release),
        **_conflicts(ev.ENGINE_VERSION_SUFFIX, pairs, "engine_version", _same_build),
        **_conflicts(ev.ENGINE_MODE_CONFLICTS, pairs, "engine_mode", _same_words),
        **_conflicts(ev.ARCH_CONFLICTS, pairs, "arch", lambda pair: _same_arch(pair, subject.gpu)),
        **_conflicts(ev.LABEL_CONFLICTS, pairs, "label", _same_words),
        **_conflicts(ev.FLAG_CONFLICTS, pairs, "flag", _same_words),
        **_conflicts(ev.CONTEXT_CONFLICTS, pairs, "context", _same_words),
        **timestamps(claim, pairs),
        **_unpinned(claim.asked),
        ev.NOT_MEASURED: Observed(float(claim.kind != "measured"), f"the value is {claim.kind}"),
    }


def _conflicts(column: str, pairs: Iterable[Pair], what: str, is_same: Same) -> EvidenceByColumn:
    """How many pairs of this sort disagree; no column where there are none."""
    own = [pair for pair in pairs if pair.what == what]
    if not own:
        return {}
    told = [_told(pair) for pair in own if not is_same(pair)]
    return {column: Observed(float(len(told)), "; ".join(told))}


def _told(pair: Pair) -> str:
    where = f" ({pair.where})" if pair.where else ""
    return f"{pair.claimed!r} and {pair.observed!r}{where}"


def _same_release(pair: Pair) -> bool:
    """Whether the numbers of both versions agree as far as the shorter goes: `0.9` is `0.9.2`, `0.9.1` is not."""
    claimed, observed = _release(pair.claimed), _release(pair.observed)
    if not claimed or not observed:
        return _plain(pair.claimed) == _plain(pair.observed)
    length = min(len(claimed), len(observed))
    return claimed[:length] == observed[:length]


def _release(version: str) -> list[int]:
    # Of an image's tag only what stands behind the name: `vllm/vllm-openai:v0.9.2`.
    found = _RELEASE.search(version.rpartition(":")[2])
    return [int(part) for part in found[0].split(".")] if found else []


def _same_build(pair: Pair) -> bool:
    """Whether all of both versions agrees; different releases are another finding."""
    if not _same_release(pair):
        return True
    claimed, observed = (_suffix(version) for version in (pair.claimed, pair.observed))
    return not claimed or not observed or claimed == observed


def _suffix(version: str) -> str:
    tag = version.rpartition(":")[2]
    found = _RELEASE.search(tag)
    return _plain(tag[found.end() :]) if found else ""


def _same_words(pair: Pair) -> bool:
    claimed, observed = _plain(pair.claimed), _plain(pair.observed)
    return claimed == observed or _number(claimed) == _number(observed) is not None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _plain(text: str) -> str:
    return re.sub(r"[\s_-]+", "", text.lower())


def _same_arch(pair: Pair, gpu: Gpu | None) -> bool:
    """Whether both name one architecture; a compiler's target is that of the claimed GPU."""
    claimed, observed = (
        re.sub(r"[^a-z0-9]", "", text.lower().partition(":")[0]) for text in (pair.claimed, pair.observed)
    )
    if claimed == observed:
        return True
    target = None if gpu is None else _TARGETS.get(gpu.arch)
    names = set() if gpu is None else {re.sub(r"[^a-z0-9]", "", gpu.gpu.lower()), gpu.arch.lower()}
    is_target = {claimed, observed} & set(_TARGETS.values())
    if is_target and gpu is not None:
        return is_target == {target}
    return bool(names) and {claimed, observed} <= names


def _unpinned(asked: ClaimedConfig) -> EvidenceByColumn:
    """How many references of the claim are not pinned; references that it lacks do not count."""
    loose = []
    if asked.image is not None and "@sha256:" not in asked.image:
        loose.append(f"image {asked.image!r} without a digest")
    if asked.model_revision is not None and asked.model_revision.lower() in _BRANCHES:
        loose.append(f"model revision {asked.model_revision!r} is a branch")
    if asked.image is None and asked.model_revision is None:
        return {}
    return {ev.UNPINNED: Observed(float(len(loose)), "; ".join(loose))}
