"""Rate limits: sliding windows a token, with both shapes of 429."""

from collections import defaultdict, deque
from dataclasses import dataclass, field

from tests.emulators.digitalocean.replies import Reply, refuse

MINUTE_S = 60.0
HOUR_S = 3600.0


@dataclass
class Limiter:
    """How many calls a token may make; zero means no limit. Minute and hour pass `speed` times as fast as the clock."""

    speed: float = 1.0
    per_minute: int = 250
    per_hour: int = 5000
    key_lists_per_minute: int = 10
    _calls: dict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))
    _key_lists: dict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))

    def admit(self, token: str, now: float, *, lists_keys: bool) -> Reply | None:
        """Count a call; a burst is refused with `retry-after`, an empty hour without."""
        minute_s = MINUTE_S / self.speed
        calls = _within(self._calls[token], now, HOUR_S / self.speed)
        last_minute = [at for at in calls if at > now - minute_s]
        key_lists = _within(self._key_lists[token], now, minute_s)
        if self.per_hour and len(calls) >= self.per_hour:
            return refuse(429, "API Rate limit exceeded.")
        if self.per_minute and len(last_minute) >= self.per_minute:
            return _burst(last_minute[0] + minute_s - now)
        if lists_keys and self.key_lists_per_minute and len(key_lists) >= self.key_lists_per_minute:
            return _burst(key_lists[0] + minute_s - now)
        calls.append(now)
        if lists_keys:
            key_lists.append(now)
        return None

    def headers(self, token: str, now: float) -> dict[str, str]:
        """The headers on every answer; the reset is when the oldest call leaves the window."""
        hour_s = HOUR_S / self.speed
        calls = _within(self._calls[token], now, hour_s)
        oldest = calls[0] if calls else now
        return {
            "ratelimit-limit": str(self.per_hour),
            "ratelimit-remaining": str(max(0, self.per_hour - len(calls))),
            "ratelimit-reset": str(int(oldest + hour_s)),
        }


def _within(calls: deque[float], now: float, window_s: float) -> deque[float]:
    while calls and calls[0] <= now - window_s:
        calls.popleft()
    return calls


def _burst(wait_s: float) -> Reply:
    reply = refuse(429, "API Rate limit exceeded.")
    reply.headers["retry-after"] = str(int(wait_s) + 1)
    return reply
