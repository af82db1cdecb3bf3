"""Check the rows of a history: report values that are not numbers, duplicates, and missing facts."""

import math
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from warehouse.importers.history.row import HistoryRow

Remark = tuple[str, int, str]  # code, how often, sentence
_IMPORTANT = {"host": "a change of host", "client_version": "a change of the load client", "driver": "a new driver"}


@dataclass
class _Known:
    """What was read of one series."""

    unit: str | None
    last: datetime
    count: int = 1
    rises: int = 0
    falls: int = 0
    # Hashes of time and repeat: eight bytes each, while the times only rise or only fall and none can be equal.
    in_order: "array[int]" = field(default_factory=lambda: array("q"))
    stamps: set[int] = field(default_factory=set)

    def is_stamp_new(self, at: datetime, repeat: str | None) -> bool:
        """Whether no value before had this time and repeat; they are compared only where the times change direction."""
        stamp = hash((at, repeat))
        is_apart = not self.count or (at != self.last and not (self.rises and self.falls))
        if is_apart and not self.stamps:
            self.in_order.append(stamp)
            return True
        self.stamps.update(self.in_order)
        del self.in_order[:]
        is_new = stamp not in self.stamps
        self.stamps.add(stamp)
        return is_new


class HistoryCheck:
    """Passes rows on, without duplicates; afterwards it has a sentence for each sort of doubt."""

    def __init__(self, *, is_one_night: bool = False) -> None:
        self._is_one_night = is_one_night  # then each series has one value, and no doubt follows from it
        self.kept = 0
        self._counts: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self._runs: set[int] = set()
        self._series: dict[tuple[str | None, str, str], _Known] = {}
        self._stated: Counter[str] = Counter()

    def passed(self, rows: Iterator[HistoryRow]) -> Iterator[tuple[HistoryRow, str | None]]:
        """The rows to keep, each with the reason why its value is a failure, or None."""
        for row in rows:
            if row.measured_at is None:
                self._note("no_time", row.place)
            elif not self._is_new(row):
                self._note("duplicate_run", row.place)
            else:
                self._follow(row, row.measured_at)
                self.kept += 1
                failure = self._failure(row)
                yield (row if failure is None else replace(row, value=None)), failure

    def _note(self, code: str, what: str) -> None:
        self._counts[code] += 1
        self._first.setdefault(code, what)

    def _is_new(self, row: HistoryRow) -> bool:
        """Whether this run of the series was not read before; without a run id, whether the same value was not."""
        who = row.run_id or (row.measured_at, row.value)
        mark = hash((row.source, row.series, row.metric, row.unit, who, row.repeat))
        is_new = mark not in self._runs
        self._runs.add(mark)
        return is_new

    def _failure(self, row: HistoryRow) -> str | None:
        if row.value is None:
            self._note("no_number", row.place)
            return "no number"
        if not math.isfinite(row.value):
            self._note("not_finite", row.place)
            return "NaN or infinite"
        if row.value == 0:
            self._note("zero", row.place)
            return "zero, counted as a failure"
        if row.value < 0:
            self._note("negative", row.place)
            return "below zero"
        return None

    def _follow(self, row: HistoryRow, at: datetime) -> None:
        self._stated.update(row.stack.keys())
        if not row.has_zone:
            self._note("no_zone", row.place)
        key = (row.source, row.series, row.metric)
        known = self._series.setdefault(key, _Known(row.unit, at, count=0))
        if known.unit != row.unit:
            self._note("unit_change", f"{row.place}: {row.series} {row.metric} from {known.unit} to {row.unit}")
            known.unit = row.unit
        known.rises += at > known.last
        known.falls += at < known.last
        if not known.is_stamp_new(at, row.repeat):
            self._note("same_stamp", f"{row.place}: {row.series} {row.metric} at {at.isoformat()}")
        known.last = at
        known.count += 1

    @property
    def series_count(self) -> int:
        """How many series were read."""
        return len(self._series)

    def remarks(self) -> list[Remark]:
        """A sentence for each sort of doubt, with its count."""
        # A table with the newest first falls all the way; a clock that ran backwards rises, too.
        back = [
            (series, metric, min(one.rises, one.falls))
            for (_, series, metric), one in self._series.items()
            if one.rises and one.falls
        ]
        for series, metric, times in back:
            self._note("clock_backwards", f"{series} {metric}")
            self._counts["clock_backwards"] += times - 1
        for (_, series, metric), one in self._series.items():
            if one.count == 1 and not self._is_one_night:
                self._note("one_point", f"{series} {metric}")
        found = [(code, self._counts[code], text) for code, text in _SENTENCES.items() if self._counts[code]]
        said = [(code, count, text.format(count=count, first=self._first[code])) for code, count, text in found]
        return [*said, *self._unstated()]

    def _unstated(self) -> Iterator[Remark]:
        for name, what in _IMPORTANT.items():
            if lacking := self.kept - self._stated[name]:
                share = "no row states" if lacking == self.kept else f"{lacking} of {self.kept} rows do not state"
                yield (
                    f"no_{name}",
                    lacking,
                    f"{share} {name}: {what} there cannot be distinguished from one of the engine",
                )


_SENTENCES = {
    "duplicate_run": "{count} row(s) repeat a run that was read before and are dropped, the first at {first}",
    "zero": "{count} value(s) are zero and count as failures, the first at {first}",
    "negative": "{count} value(s) are below zero and count as failures, the first at {first}",
    "not_finite": "{count} value(s) are NaN or infinite and count as failures, the first at {first}",
    "no_number": "{count} value(s) are not numbers and count as failures, the first at {first}",
    "no_time": "{count} row(s) have no time that can be read and are dropped, the first at {first}",
    "no_zone": "{count} time(s) have no time zone and are read as UTC, the first at {first}",
    "unit_change": "{count} time(s) a metric changes its unit, and a new series begins; the first is {first}",
    "same_stamp": "{count} value(s) have the time of another one of their series and count as its repeats; "
    "the first is {first}",
    "clock_backwards": "{count} time(s) the rows of a series run back in time, though not all of them; they are "
    "sorted by time; the first is {first}",
    "one_point": "{count} series have one value and no trend; the first is {first}",
}
