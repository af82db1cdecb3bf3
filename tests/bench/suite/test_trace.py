import pytest

from bench.errors import SuiteError
from bench.suite.trace import read_arrivals


@pytest.mark.parametrize(
    "text",
    [
        "arrival_s\n0.5\n0.75\n2\n",
        "id,arrival_s,tokens\na,0.5,3\nb,0.75,3\nc,2,3\nd,9,3\n",
        '{"arrival_s": 0.5}\n\n{"arrival_s": 0.75, "tokens": 3}\n{"arrival_s": 2}\n',
    ],
)
def test_arrivals_are_counted_from_the_first_and_only_as_many_as_are_asked(text: str) -> None:
    assert read_arrivals(text, "trace", 3) == (0.0, 0.25, 1.5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("arrival\n1\n", "trace:1: the column arrival_s is missing"),
        ("", "trace:1: the column arrival_s is missing"),
        ("arrival_s\n1\nsoon\n", "trace:3: arrival_s must be a number of seconds, at least 0, not 'soon'"),
        ("arrival_s\n-1\n", "trace:2: arrival_s must be"),
        ("arrival_s\nnan\n", "trace:2: arrival_s must be"),
        ("arrival_s\n2\n1\n", "trace:3: 1 s is before the previous arrival at 2 s"),
        ("arrival_s\n1\n2\n", "trace: has 2 arrivals, but the scenario sends 3 requests, warm-up included"),
        ('{"arrival_s": 1}\n{"arrival_s": true}\n', "trace:2: arrival_s must be"),
        ('{"arrival_s": 1}\n{oops\n', "trace:2: not JSON"),
        ('{"arrival_s": 1}\n[2]\n', "trace:2: arrival_s must be"),
    ],
)
def test_what_is_no_trace_is_said_with_file_and_line(text: str, said: str) -> None:
    with pytest.raises(SuiteError) as caught:
        read_arrivals(text, "trace", 3)

    assert str(caught.value).startswith(said)
