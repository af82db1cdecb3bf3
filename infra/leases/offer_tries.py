"""Counts the tries of a plan's offers over all rounds, so that a machine that fails is not rented in each of them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from bench.record import AttemptOutcome
from infra.clouds.cloud import Offer

TRIES_PER_OFFER = 2  # where its machine was created and did not become active

_Place = tuple[str, str | None, bool]


@dataclass
class OfferTries:
    """The tries of each kind and region: a lack of capacity counts in one round, a failed machine in all of them."""

    failed: Counter[_Place] = field(default_factory=Counter)
    sold_out: set[_Place] = field(default_factory=set)  # in this round

    def begin_round(self) -> None:
        """Forget which offers had no capacity."""
        self.sold_out.clear()

    def count(self, offer: Offer, outcome: AttemptOutcome) -> None:
        """Count a try that resulted in no machine; a request without a reply is counted by its sender."""
        if outcome == "no-capacity":
            self.sold_out.add(_place(offer))
        elif outcome == "refused":  # its machine costs too much, as the next one would
            self.failed[_place(offer)] = TRIES_PER_OFFER
        elif outcome != "unanswered":
            self.failed[_place(offer)] += 1

    def is_new(self, offer: Offer) -> bool:
        """Whether an offer was neither sold out in this round nor has had a machine that failed."""
        return _place(offer) not in self.sold_out and not self.failed[_place(offer)]

    def is_over(self, offer: Offer) -> bool:
        """Whether an offer is not tried again in this round."""
        return _place(offer) in self.sold_out or self.is_used_up(offer)

    def is_used_up(self, offer: Offer) -> bool:
        """Whether an offer is not tried again in any round."""
        return self.failed[_place(offer)] >= TRIES_PER_OFFER

    def are_used_up(self, offers: Iterable[Offer]) -> bool:
        """Whether none of these is tried again in any round."""
        return all(map(self.is_used_up, offers))


def _place(offer: Offer) -> _Place:
    """What the tries of an offer count for, whose price may change from round to round."""
    return offer.kind, offer.region, offer.is_spot
