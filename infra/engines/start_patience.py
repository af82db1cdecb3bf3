"""How long a server may take to become ready: longer while its log shows that it compiles kernels, up to a bound."""

COMPILING_MAX = 3.0  # times the timeout; a lock of a killed compiler is waited for no longer


class StartPatience:
    """The patience with one start: `timeout_s` from its begin, and again from each step of compiling that it logs.

    At most COMPILING_MAX times `timeout_s` in all. Times are seconds of one monotonic clock.
    """

    def __init__(self, timeout_s: float, began_s: float) -> None:
        self._timeout_s = timeout_s
        self._began_s = began_s
        self._until_s = began_s + timeout_s
        self._steps = 0

    def is_over(self, steps: int, now_s: float) -> bool:
        """Whether the server has had its time; `steps`: of compiling, that its log shows now."""
        if steps > self._steps:
            self._steps = steps
            self._until_s = min(now_s + self._timeout_s, self._began_s + COMPILING_MAX * self._timeout_s)
        return now_s >= self._until_s

    def explain(self) -> str:
        """What was waited for, for a person."""
        what = f"the server was not ready after {self._until_s - self._began_s:.4g} s (suite: ready_timeout_s"
        longest_s = COMPILING_MAX * self._timeout_s
        return f"{what}, longer while kernels are compiled, at most {longest_s:g} s)" if self._steps else f"{what})"
