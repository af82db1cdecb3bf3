"""Look up the catalogue's row for the name of a GPU, model or precision: one row, else None, and the rows it may mean.

A name matches a row or an alias with the same words, apart from ignored words (`instruct`, `nvidia`). One word more is
another thing: `R1-Distill-Llama-70B` is not R1, and `H100` alone may be two GPUs. Words are compared by their letters
and numbers in order, so `llama3.1-70b` is `Llama-3.1-70B`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import ClassVar, Literal, TypeVar

from bench.catalog.csv_rows import CsvRow
from bench.catalog.precisions import WEIGHT_BYTES
from bench.catalog.rows import CatalogModel, Gpu
from bench.errors import CatalogError

_BETWEEN_WORDS = re.compile(r"[^a-z0-9.]+|(?<!\d)\.|\.(?!\d)")
_PARTS = re.compile(r"[a-z]+|\d+(?:\.\d+)*")
# How many GPUs a name says: `8xMI300X`, `8 x H100`, `8 H100`; `H100 x8`, `HGX H100 8-GPU`, `H200 (8 GPUs)`.
_COUNT_BEFORE = re.compile(r"^\s*(\d{1,4}\s*[x\u00d7*]|\d{1,3}(?:[\s-]*gpus?)?\s)\s*(?=[a-z\d])", re.IGNORECASE)
_COUNT_AFTER = re.compile(
    r"[\s(,]*(?<![a-z])([x\u00d7*]\s*\d{1,4}|[\s(,-]\d{1,3}[\s-]*(?:gpus?|cards?))\s*\)?\s*$", re.IGNORECASE
)
_COUNT = re.compile(r"\d+x|x\d+")  # `8x`, `x8`: how many, not which
_GGUF = re.compile(r"[-_.:](i?q\d(?:_[a-z0-9]+)+)(?:\.gguf)?$")  # `-q4_k_m.gguf`, the end of a file's name
_IN_TEXT = re.compile(r"[^\s()\[\],;:]+")  # words of a text with punctuation
_LONGEST = 6  # words of a GPU's name: `8 x AMD Instinct MI300X 192GB`
_ONLY_PART = frozenset({"cu", "sm", "cpx", "equivalent", "class"})  # behind a GPU's name: less than it, or another
_MAKERS = frozenset({"amd", "aws", "google", "intel", "huawei", "nvidia", "cloud", "geforce"})
_STATED = re.compile(r"(\d+)(gb|gib|w)")  # memory and power, which must be the row's own

_Words = tuple[str, ...]
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class Name(CsvRow):
    """An alias of a row (`means`), or a word that is ignored."""

    KEY: ClassVar = ("kind", "name")

    kind: str  # gpu, model, precision; accelerator: one of which nothing but its name is in the catalogue
    name: str
    means: str | None  # None: the word is ignored


@dataclass(frozen=True)
class Names:
    """Every name of every row."""

    gpus: Mapping[_Words, Gpu]
    models: Mapping[_Words, CatalogModel]
    precisions: Mapping[_Words, str]
    silent: Mapping[str, frozenset[str]] = field(default_factory=dict)  # words passed over, by kind
    accelerators: Mapping[_Words, str] = field(default_factory=dict)  # of unknown physics
    several: Mapping[_Words, tuple[str, ...]] = field(default_factory=dict)  # precisions that one name may mean

    @classmethod
    def of(cls, gpus: Iterable[Gpu], models: Iterable[CatalogModel], names: Iterable[Name]) -> "Names":
        """The names and aliases of these rows; CatalogError if an alias has no row, or two."""
        given = tuple(names)
        several = {
            _parts(_words(row.name.lower())): tuple((row.means or "").split("|")) for row in given if _is_several(row)
        }
        return cls(
            _table("gpu", {row.gpu: row for row in gpus}, given),
            _table("model", {row.model: row for row in models}, given),
            _table("precision", {name: name for name in WEIGHT_BYTES}, given),
            {kind: _silent(kind, given) for kind in ("gpu", "model", "precision")},
            _table(
                "accelerator", {row.means: row.means for row in given if row.kind == "accelerator" and row.means}, given
            ),
            several,
        )

    def gpu(self, text: str) -> Gpu | None:
        """The GPU of this name: `AMD Instinct MI300X 192GB`, `8x mi300x`."""
        words = _words(_without_count(text))
        loud = [word for word in words if word not in self.silent["gpu"] and not _COUNT.fullmatch(word)]
        found = self.gpus.get(_parts(words)) or self.gpus.get(_parts(loud))
        if found is not None:
            return found
        stated = [match for match in map(_STATED.fullmatch, loud) if match]
        found = self.gpus.get(_parts(word for word in loud if not _STATED.fullmatch(word)))
        return found if found and all(_agrees(found, match) for match in stated) else None

    def gpus_called(self, text: str) -> tuple[Gpu, ...]:
        """Every GPU that the name may be of: `H100` is the SXM, the PCIe or the NVL card; empty if it fits none."""
        one = self.gpu(text)
        if one is not None:
            return (one,)
        words = _words(_without_count(text))
        loud = [word for word in words if word not in self.silent["gpu"] and not _COUNT.fullmatch(word)]
        stated = [match for match in map(_STATED.fullmatch, loud) if match]
        wanted = _parts(word for word in loud if not _STATED.fullmatch(word))
        return tuple(row for row in self._by_beginning.get(wanted, ()) if all(_agrees(row, it) for it in stated))

    @cached_property
    def _by_beginning(self) -> Mapping[_Words, tuple[Gpu, ...]]:
        """The GPUs whose row's name begins with these words."""
        found: dict[_Words, dict[str, Gpu]] = {}
        for row in self.gpus.values():
            for beginning in _beginnings(row.gpu):
                found.setdefault(beginning, {})[row.gpu] = row
        return {beginning: tuple(rows.values()) for beginning, rows in found.items()}

    def accelerator(self, text: str) -> str | None:
        """The accelerator of this name whose memory, bandwidth and peak the catalogue does not have: `TPU v5e-8`."""
        loud = [word for word in _words(_without_count(text)) if word not in _MAKERS]
        found = (self.accelerators.get(_parts(loud[:count])) for count in range(len(loud), 0, -1))
        return next(filter(None, found), None)

    def gpu_in(self, text: str) -> str | None:
        """The one GPU that a longer text names, as written there: `8x MI300X` of `Cloud node, 8x MI300X`.

        None if it names none, two, or a part of one (`MI300X CU`).
        """
        words = _IN_TEXT.findall(text)
        found: dict[tuple[Gpu, ...], str] = {}
        start = 0
        while start < len(words):
            tried = range(_LONGEST, 0, -1) if self._may_begin(words[start].lower()) else ()
            length = next((count for count in tried if self._names_gpus(words[start : start + count])), 0)
            if length:
                phrase = " ".join(words[start : start + length])
                is_part = any(word.lower() in _ONLY_PART for word in words[start + length : start + length + 1])
                found[() if is_part else self.gpus_called(phrase)] = phrase
            start += length or 1
        return next(iter(found.values())) if len(found) == 1 and () not in found else None

    def _may_begin(self, word: str) -> bool:
        """Whether a GPU's name may begin with this word; the first part alone excludes most words of a text."""
        first = _PARTS.match(word)
        return first is not None and (first[0] in self._first_parts or first[0].isdigit())

    @cached_property
    def _first_parts(self) -> frozenset[str]:
        silent = (part for word in self.silent["gpu"] for part in _PARTS.findall(word)[:1])
        return frozenset({*(words[0] for words in self.gpus), *silent})

    def _names_gpus(self, words: list[str]) -> bool:
        return bool(self.gpus_called(" ".join(words)))

    def model(self, text: str) -> CatalogModel | None:
        """The model of a repository, a path or a label: `amd/Llama-3.1-70B-Instruct-FP8-KV`, `hf:org/name@commit`."""
        whole = _GGUF.sub("", text.lower().removeprefix("hf:").partition("@")[0].rstrip("/"))
        for name in (whole, whole.rpartition("/")[2]):
            words = _words(name)
            loud = (word for word in words if word not in self.silent["model"])
            found = self.models.get(_parts(words)) or self.models.get(_parts(loud))
            if found is not None:
                return found
        return None

    def has_distilled(self, text: str) -> bool:
        """Whether smaller models are distilled from the model of this name: a size beside it says which is meant."""
        begin = (*_parts(_words(text.lower())), "distill")
        return any(name[: len(begin)] == begin for name in self.models)

    def model_in(self, text: str) -> str | None:
        """The one model that a word of a longer text is the name of; None if there is none, or several.

        Only whole words, so that `DeepSeek R1 Distill Llama 70B` is not taken for R1.
        """
        found = {row.model: word for word in _IN_TEXT.findall(text) if (row := self.model(word)) is not None}
        return next(iter(found.values())) if len(found) == 1 and "distill" not in text.lower() else None

    def precision(self, text: str) -> str | None:
        """The precision of weights, a key of WEIGHT_BYTES: `FP8 (--quantization fp8)` is fp8, two of them are None."""
        words = _words(text.lower())
        whole = self.precisions.get(_parts(words))
        if whole is not None:
            return whole
        found = {self.precisions.get(_parts([word])) for word in words if word not in self.silent["precision"]}
        return found.pop() if len(found) == 1 else None

    def precisions_called(self, text: str) -> tuple[str, ...]:
        """Every precision that the text names; empty if a word of it is none."""
        one, words = self.precision(text), _words(text.lower())
        if one is not None:
            return (one,)
        loud = [word for word in words if word not in self.silent["precision"]]
        several = self.several.get(_parts(words)) or self.several.get(_parts(loud))
        if several is not None:
            return several
        found = {self.precisions.get(_parts([word])) for word in loud}
        return () if None in found else tuple(sorted(name for name in found if name))

    def nearest(self, kind: Literal["gpu", "model", "precision"], text: str) -> tuple[str, ...]:
        """The names of the catalogue's rows that look most like this one."""
        rows = {
            "gpu": {row.gpu for row in self.gpus.values()},
            "model": {row.model for row in self.models.values()},
            "precision": set(self.precisions.values()),
        }[kind]
        names = {name.lower(): name for name in sorted(rows)}
        loud = (word for word in _words(text.lower().rpartition("/")[2]) if word not in self.silent[kind])
        return tuple(names[near] for near in get_close_matches("-".join(loud), names, n=3, cutoff=0.4))

    def precision_in(self, model: str) -> str | None:
        """The precision in a model's name: `...-Instruct-FP8-KV` is fp8; None if it names none, or two."""
        name = model.lower().partition("@")[0].rpartition("/")[2]
        if (quantised := _GGUF.search(name)) is not None:
            return self.precision(quantised[1])
        words = _words(name)
        found = {self.precisions[key] for key in (_parts([word]) for word in words) if key in self.precisions}
        return found.pop() if len(found) == 1 else None


def count_of_gpus(text: str) -> int | None:
    """How many GPUs a name says: 8 of `8x H100 SXM` and of `H100 SXM x8`; None if it says none."""
    found = _COUNT_BEFORE.search(text) or _COUNT_AFTER.search(text)
    return int(re.sub(r"\D", "", found[1])) if found else None


def _without_count(text: str) -> str:
    return _COUNT_AFTER.sub("", _COUNT_BEFORE.sub("", text.lower()))


def _words(text: str) -> list[str]:
    return [word for word in _BETWEEN_WORDS.split(text) if word]


def _parts(words: Iterable[str]) -> _Words:
    return tuple(part for word in words for part in _PARTS.findall(word))


def _beginnings(name: str) -> Iterator[_Words]:
    """The short forms of a row's name: its first words, without those that distinguish variants."""
    words = _words(name.lower())
    return (_parts(words[:count]) for count in range(1, len(words)))


def _agrees(gpu: Gpu, stated: re.Match[str]) -> bool:
    return float(stated[1]) == (gpu.tdp_w if stated[2] == "w" else gpu.mem_gb_spec)


def _silent(kind: str, names: Iterable[Name]) -> frozenset[str]:
    return frozenset(row.name for row in names if row.kind == kind and row.means is None)


def _is_several(name: Name) -> bool:
    """Whether a name of precisions means one of several: `fp8|int8`."""
    return name.kind == "precision" and "|" in (name.means or "")


def _table(kind: str, rows: Mapping[str, _T], names: Iterable[Name]) -> dict[_Words, _T]:
    table = {_parts(_words(name.lower())): row for name, row in rows.items()}
    for given in names:
        if given.kind != kind or given.means is None or _is_several(given):
            continue
        if given.means not in rows:
            raise CatalogError(
                f"catalog/names.csv: {given.name!r} means {given.means!r}, which is not a {kind} of the catalogue"
            )
        key = _parts(_words(given.name.lower()))
        if table.setdefault(key, rows[given.means]) is not rows[given.means]:
            raise CatalogError(f"catalog/names.csv: {given.name!r} means {given.means!r} and another row: remove one")
    return table
