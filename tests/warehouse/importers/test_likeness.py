"""The nearest spelling of a name: nearly always that of a comparison with all of them, at a small part of its cost."""

import cProfile
import difflib

from catalog.read import read_spellings
from tests.warehouse.importers.reading import claims_of
from warehouse.importers.claims_table.likeness import Spellings
from warehouse.importers.parsing.printed_units import split_name

WORDS = [split_name(row.spelling)[0] for row in read_spellings()]
CUTOFF = 0.5


def test_the_few_that_are_compared_have_the_nearest_of_all() -> None:
    spellings = Spellings(WORDS)
    misspelt = [f"{words[:4]}{words[5:]}x" for words in WORDS[::9] if len(words) > 6]

    def ratio(name: str, found: str | None) -> float:
        return difflib.SequenceMatcher(None, found or "", name).ratio()

    of_all = [difflib.get_close_matches(name, spellings.texts, n=1, cutoff=CUTOFF)[0] for name in misspelt]
    apart = [
        (name, best)
        for name, best in zip(misspelt, of_all, strict=True)
        if ratio(name, spellings.nearest(name, CUTOFF)) < ratio(name, best)
    ]

    assert len(misspelt) >= 50
    assert len(apart) <= len(misspelt) // 50


def test_nothing_is_near_a_name_of_other_letters() -> None:
    assert Spellings(WORDS).nearest("zzqqjj", CUTOFF) is None


def test_a_header_of_hundreds_of_columns_compares_each_with_a_few_spellings() -> None:
    header = ["Model", "Output tok/s", *(f"stage {at} of kernel queue {at % 7} mean" for at in range(200))]
    row = ["Llama-3.1-8B", "33", *map(str, range(200))]
    profile = cProfile.Profile()

    with profile:
        (claim,) = claims_of("wide.csv", f"{','.join(header)}\n{','.join(row)}\n")
    (compared,) = [each.callcount for each in profile.getstats() if _is_ratio(each.code)]

    assert len(claim.not_read) == 200
    assert 0 < compared <= 20 * len(header)  # of some hundred spellings


def _is_ratio(code: object) -> bool:
    return code is difflib.SequenceMatcher.ratio.__code__
