"""Which request goes next: the conversation's next turn once the one before it has ended, else a new beginning."""

from collections import deque
from collections.abc import Sequence
from itertools import pairwise

from meter.exchange import Exchange


class Order:
    """The requests that may be sent, the turn that has waited longest for a slot before any that begins anew.

    A slot that ends a turn takes up the next one in the same moment, so each slot goes through its conversation.
    """

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self._beginnings = deque(exchange for exchange in exchanges if not exchange.request.prompt.turn)
        self._next_turns: deque[Exchange] = deque()

    def __bool__(self) -> bool:
        """Say whether there is one."""
        return bool(self._next_turns or self._beginnings)

    def take(self) -> Exchange:
        """Take it out."""
        return self._next_turns.popleft() if self._next_turns else self._beginnings.popleft()

    def end(self, exchange: Exchange) -> bool:
        """Let the turn after this one be taken; say whether there is one."""
        if exchange.next_turn is None:
            return False
        self._next_turns.append(exchange.next_turn)
        return True


def link_turns(exchanges: Sequence[Exchange]) -> None:
    """Tell each turn of a conversation which one comes after it; all turns of one stand side by side."""
    for earlier, later in pairwise(exchanges):
        if later.request.prompt.turn:
            earlier.next_turn = later
