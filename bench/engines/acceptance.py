"""How much of an engine's drafts was accepted during a load, out of its counters."""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.metrics import ratio

_DRAFTS = "spec_decode_num_drafts_total"
_PROPOSED = "spec_decode_num_draft_tokens_total"
_ACCEPTED = "spec_decode_num_accepted_tokens_total"
_AT = "spec_decode_num_accepted_tokens_per_pos_total."


@dataclass(frozen=True)
class Acceptance:
    """Drafts, the tokens proposed in them and those accepted; `by_position` counts drafts accepted up to it, from 0.

    The definitions are vLLM's: `length` is 1 + accepted / drafts, since each step also yields a token of the model's
    own; `rate` is accepted / proposed.
    """

    drafts: float
    proposed: float
    accepted: float
    by_position: Mapping[int, float]

    @property
    def length(self) -> float | None:
        """Mean tokens of a step with a draft; None without drafts."""
        return 1 + self.accepted / self.drafts if self.drafts else None

    @property
    def rate(self) -> float | None:
        """The share of the proposed tokens that was accepted."""
        return ratio(self.accepted, self.proposed)

    def rate_at(self, position: int) -> float | None:
        """The share of the drafts that was accepted up to this position; None for one that no counter has."""
        return ratio(self.by_position.get(position), self.drafts)


def acceptance_of(deltas: Mapping[str, float] | None) -> Acceptance | None:
    """What the counters of speculative decoding moved by; None of a server without them."""
    if deltas is None or _DRAFTS not in deltas:
        return None
    by_position = {int(name.removeprefix(_AT)): moved for name, moved in deltas.items() if name.startswith(_AT)}
    return Acceptance(deltas[_DRAFTS], deltas.get(_PROPOSED, 0.0), deltas.get(_ACCEPTED, 0.0), by_position)
