"""Which request goes next: the next turn of a conversation whose last turn has ended, else a new conversation."""

from collections import deque
from collections.abc import Sequence
from itertools import pairwise

from meter.exchange import Exchange


class Order:
    """The requests that may be sent: first the waiting turns, in order of waiting, then new conversations.

    A slot that ends a turn takes the next one at once, so each slot goes through its conversation.
    """

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self._beginnings = deque(exchange for exchange in exchanges if not exchange.request.prompt.turn)
        self._next_turns: deque[Exchange] = deque()

    def __bool__(self) -> bool:
        """Whether a request may be sent."""
        return bool(self._next_turns or self._beginnings)

    def take(self) -> Exchange:
        """Remove and return the next request."""
        return self._next_turns.popleft() if self._next_turns else self._beginnings.popleft()

    def frees_slot(self, exchange: Exchange) -> bool:
        """Whether the end of this request leaves a slot of a closed loop free."""
        return exchange.intended_ns is None

    def end(self, exchange: Exchange) -> bool:
        """Make the turn after this one available; return whether there is one."""
        if exchange.next_turn is None:
            return False
        self._next_turns.append(exchange.next_turn)
        return True


def link_turns(exchanges: Sequence[Exchange]) -> None:
    """Link each turn of a conversation to the next one; the turns of one conversation are neighbours."""
    for earlier, later in pairwise(exchanges):
        if later.request.prompt.turn:
            earlier.next_turn = later
