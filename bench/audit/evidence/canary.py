"""What the canaries of a lease say about its runs: how near a floor the machine is, and whether it became slower."""

from collections.abc import Sequence

from bench import evidence_columns as ev
from bench.audit.evidence.evidence import EvidenceByColumn, Observed
from bench.catalog.rows import CanaryFloor
from bench.machine.canary import CanaryRecord, FindGpu, compare


def canary_evidence(
    canaries: Sequence[CanaryRecord], find_gpu: FindGpu, floors: Sequence[CanaryFloor]
) -> EvidenceByColumn:
    """The evidence of one lease's canaries; empty where no GPU was measured, or none has a floor."""
    found: EvidenceByColumn = {}
    compared = [one for canary in canaries for one in compare(canary, find_gpu, floors)]
    over = [(one.over_floor, one.title) for one in compared if one.over_floor is not None]
    if over:
        least, title = min(over)
        found[ev.CANARY_OVER_FLOOR] = Observed(least, title)
    kept = _kept_shares(canaries)
    if kept:
        least, title = min(kept)
        found[ev.CANARY_KEPT_SHARE] = Observed(least, title)
    return found


def _kept_shares(canaries: Sequence[CanaryRecord]) -> list[tuple[float, str]]:
    """Of each test of a GPU, its value after the runs over the value before them."""
    before, after = (_gpu_values(canaries, position) for position in ("before", "after"))
    shares = []
    for (test, device, peer), value in after.items():
        first = before.get((test, device, peer))
        if first is not None:
            place = f"{test} of GPU {device}" if peer is None else f"{test} from GPU {device} to GPU {peer}"
            shares.append((value / first, f"{place}, {first:,.4g} before and {value:,.4g} after"))
    return shares


def _gpu_values(canaries: Sequence[CanaryRecord], position: str) -> dict[tuple[str, int, int | None], float]:
    """The values at one position of each test of a GPU, by test, GPU and the GPU of a link's other end."""
    return {
        (result.test, result.device, result.peer): result.value
        for canary in canaries
        for result in canary.results
        if canary.position == position and result.device is not None and result.value is not None
    }
