"""A comparison as Markdown, read by a real Markdown parser."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from flows.show.markdown import ROWS, code, comparison_markdown
from warehouse.schema.row import Row

HOSTILE = "x`</code><script>alert(1)</script> | @everyone [a](javascript:b) \x1b[2J\n# y"


def pair(verdict: str = "loss", **more: object) -> Row:
    sizes: Row = {"a": 100.0, "b": 90.0, "effect_pct": -10.0, "ci_lo": -11.0, "ci_hi": -9.0, "min_effect_pct": 2.0}
    return {"verdict": verdict, "series": "m/chat", "metric": "tok_per_s"} | sizes | more


def answer(*pairs: Row, **more: object) -> Row:
    has_loss = any(one["verdict"] == "loss" for one in pairs)
    said: Row = {"a": "0.31", "b": "0.32", "has_confirmed_loss": has_loss, "summary": "1 pair: 1 loss"}
    return said | {"pairs": list(pairs), "missing": [], "refused": []} | more


def read(text: str) -> str:
    """The HTML of it, with inline HTML as GitHub takes it."""
    return str(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))


def test_a_loss_is_the_headline_and_a_row_with_its_interval() -> None:
    page = read(comparison_markdown(answer(pair(), pair("equivalent")), "nightbench compare 0.31 0.32"))

    assert "<h3>Nightbench: a loss is confirmed</h3>" in page
    assert re.search(r"<strong>loss</strong>.*-10\.0 % \[-11\.0, -9\.0\]", page, re.DOTALL)
    assert "<details><summary>1 pairs without a confirmed change</summary>" in page
    assert "<code>nightbench compare 0.31 0.32</code>" in page


def test_the_summary_begins_with_a_capital_and_keeps_the_names_in_it() -> None:
    page = read(comparison_markdown(answer(summary="runs of 2026-11-16T010000Z are suspect"), "nightbench compare"))

    assert "Runs of 2026-11-16T010000Z are suspect." in page


def test_what_a_side_lacks_stands_with_its_reason_and_only_there() -> None:
    missing = {"side": "B", "series": "m/long", "metrics": 4, "why": "3 rejected: too few requests"}
    refused = [{"series": "m/long", "reason": "only A has it", "metrics": 4}]

    text = comparison_markdown(answer(missing=[missing], refused=refused), "x")

    assert "1 series missing on one side" in text
    assert "`3 rejected: too few requests`" in text
    assert "series not compared" not in text
    assert "nothing was compared" in text


@settings(max_examples=40)
@given(st.one_of(st.just(HOSTILE), st.text(max_size=30)))
def test_no_name_becomes_html_a_link_or_another_column(text: str) -> None:
    row = pair(series=text, metric=text)

    page = read(comparison_markdown(answer(row, a=text, b=text, missing=[{"series": text, "why": text}]), text))

    assert set(re.findall(r"</?(\w+)", page)) <= {
        "h3", "p", "code", "table", "thead", "tbody", "tr", "th", "td", "strong", "details", "summary",
    }  # fmt: skip
    assert [line.count("<td") for line in re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL) if "<td" in line] == [7, 2]


def test_a_mention_stands_in_a_code_span() -> None:
    assert read(code("chat@everyone")) == "<p><code>chat@everyone</code></p>\n"


def test_a_long_table_says_how_much_it_leaves_out() -> None:
    assert f"{3} more are in the JSON." in comparison_markdown(answer(*[pair()] * (ROWS + 3)), "x")
