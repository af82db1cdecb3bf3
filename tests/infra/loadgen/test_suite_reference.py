"""The reference page of a suite's keys."""

from infra.loadgen.suite_reference import reference_markdown


def test_a_key_has_its_type_its_limits_its_default_and_its_comment() -> None:
    text = reference_markdown()

    assert '| `repeats` | whole number or `"plan"` | `3` | "plan": from what earlier nights show |' in text
    note = "the machine is released after this time, whatever happens"
    assert f"| `lease_minutes` | whole number, at least 1 | `60` | {note} |" in text
    assert "`image_commit`" not in text.split("## [engine]")[1].split("| key |")[1].split("##")[0]
