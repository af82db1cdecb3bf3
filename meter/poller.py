"""Which sockets are ready: epoll if the system has it, else `selectors`, with the same methods."""

import select
import selectors
from typing import Protocol

READABLE = 1  # EPOLLIN
WRITABLE = 4  # EPOLLOUT; errors and hang-ups come as other bits and count as readable
MOST_EVENTS = 4096  # in one turn


class Poller(Protocol):
    """Level-triggered readiness by file descriptor."""

    def register(self, fd: int, mask: int) -> None:
        """Watch a descriptor that is not watched yet."""

    def modify(self, fd: int, mask: int) -> None:
        """Watch a descriptor for something else."""

    def unregister(self, fd: int) -> None:
        """Forget a descriptor; before it is closed."""

    def poll(self, wait_s: float, most: int) -> list[tuple[int, int]]:
        """Wait for at most so long; each ready descriptor comes once, with its mask."""

    def close(self) -> None:
        """Close the kernel's object."""


class SelectorPoller:
    """A poller on the standard library's portable selectors."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def register(self, fd: int, mask: int) -> None:
        """Watch a descriptor that is not watched yet."""
        self._selector.register(fd, _selector_mask(mask))

    def modify(self, fd: int, mask: int) -> None:
        """Watch a descriptor for something else."""
        self._selector.modify(fd, _selector_mask(mask))

    def unregister(self, fd: int) -> None:
        """Forget a descriptor; before it is closed."""
        self._selector.unregister(fd)

    def poll(self, wait_s: float, most: int) -> list[tuple[int, int]]:
        """Wait for at most so long; each ready descriptor comes once, with its mask."""
        ready = self._selector.select(wait_s)[:most]
        return [(key.fd, _mask(events)) for key, events in ready]

    def close(self) -> None:
        """Close the kernel's object."""
        self._selector.close()


def _selector_mask(mask: int) -> int:
    read = selectors.EVENT_READ if mask & READABLE else 0
    return read | (selectors.EVENT_WRITE if mask & WRITABLE else 0)


def _mask(events: int) -> int:
    return (READABLE if events & selectors.EVENT_READ else 0) | (WRITABLE if events & selectors.EVENT_WRITE else 0)


def open_poller() -> Poller:
    """Open the best poller of this system."""
    return select.epoll() if hasattr(select, "epoll") else SelectorPoller()
