"""Where the time of a start went, read out of real logs; what says nothing possible is a sentence."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.engines.by_name import ENGINES
from bench.engines.start_log import TimedStart, read_start
from bench.server_facts import StartPhases

DATA = Path(__file__).resolve().parents[2] / "data"
EAGER = (DATA / "vllm-0.32.0-cpu" / "startup.log").read_text()
SGLANG = (DATA / "sglang" / "start-two-gpus.log").read_text()
STARTED = datetime(2026, 11, 21, 14, 30, 56, tzinfo=UTC)
# In the form of vLLM's source, see bench/engines/start_lines.py; two ranks write it.
ON_GPUS = """\
(Worker_TP0 pid=7) INFO 11-21 14:31:20 [default_loader.py:501] Loading weights took 4.00 seconds
(Worker_TP1 pid=8) INFO 11-21 14:31:20 [default_loader.py:501] Loading weights took 5.00 seconds
(Worker_TP0 pid=7) INFO 11-21 14:31:21 [gpu_model_runner.py:5150] Model loading took 7.64 GiB and 6.500000 seconds
(Worker_TP0 pid=7) INFO 11-21 14:31:30 [backends.py:399] Compiling a graph for compile range (1, 8192) takes 8.00 s
(Worker_TP0 pid=7) INFO 11-21 14:31:31 [monitor.py:84] [backbone] torch.compile took 9.00 s in total
(Worker_TP0 pid=7) INFO 11-21 14:31:32 [monitor.py:84] [eagle_head] torch.compile took 1.00 s in total
(Worker_TP0 pid=7) INFO 11-21 14:31:40 [gpu_model_runner.py:6582] Graph capturing finished in 8 secs, took 0.45 GiB
(EngineCore pid=5) INFO 11-21 14:31:40 [core.py:396] init engine (profile, create kv cache, warmup model) took 20.50 s \
(compilation: 10.00 s)
"""


def read(log: str, engine: str = "vllm", started: datetime = STARTED, ready_s: float = 60.0) -> StartPhases:
    return read_start(log, ENGINES[engine].START_LOG, TimedStart(started, ready_s, first_answer_s=0.25))


def test_the_phases_of_a_real_start_without_compilation() -> None:
    found = read(EAGER)

    assert found.phases == {
        "import_s": 28.0, "weights_s": 0.32, "device_s": 0.25356, "warmup_s": 4.69, "first_answer_s": 0.25,
    }  # fmt: skip
    assert (found.compile_cache, found.unread) == (None, ())


@pytest.mark.parametrize(
    ("cache", "started", "ready_s", "compilation_s", "found"),
    [("cold", "04:40:13", 584.5, 305.0, "cold"), ("warm", "04:49:58", 639.5, 294.0, "mixed")],
)
def test_the_compilation_of_a_real_start(
    cache: str, started: str, ready_s: float, compilation_s: float, found: str
) -> None:
    log = (DATA / "vllm-0.32.0-cpu" / f"startup-compiled-{cache}.log").read_text()

    start = read(log, started=datetime.fromisoformat(f"2026-11-26T{started}+00:00"), ready_s=ready_s)

    assert (start.compilation_s, start.compile_cache, start.unread) == (compilation_s, found, ())
    assert 0 < sum(start.phases.values()) <= ready_s


def test_seconds_of_one_process_are_added_and_what_another_phase_holds_is_taken_off() -> None:
    found = read(ON_GPUS)

    assert found.phases == {
        "weights_s": 5.0, "device_s": 1.5, "compilation_s": 10.0, "graph_capture_s": 8.0, "warmup_s": 2.5,
        "first_answer_s": 0.25,
    }  # fmt: skip


def test_sglang_is_read_by_the_times_of_its_lines() -> None:
    found = read(SGLANG, "sglang", datetime(2026, 3, 2, 9, 13, 59, tzinfo=UTC))

    assert found.phases == {
        "import_s": 22.0, "weights_s": 8.0, "graph_capture_s": 9.81, "warmup_s": 2.0, "first_answer_s": 0.25,
    }  # fmt: skip
    assert found.compile_cache == "cold"


# In the form of the source: minutes, seconds, thousandths and millionths since the process began.
LLAMA = """\
0.00.192.023 I srv    load_model: loading model '/models/model.gguf'
0.01.350.960 W load: control-looking token: 128247 '</s>' was not control-type
1.04.192.023 I srv    load_model: initializing, n_slots = 1, n_ctx_slot = 8192, kv_unified = 'false'
1.04.692.023 I srv  llama_server: model loaded
1.04.692.400 I srv  llama_server: listening on http://127.0.0.1:38911
"""


def test_llama_cpp_is_read_by_its_own_clock() -> None:
    empty_run = "1.02.192.023 T cmn  common_init_from_: warming up the model with an empty run - please wait ...\n"
    slots = LLAMA.index("1.04.192")

    found = read(LLAMA, "llama.cpp", ready_s=65.0)
    warmed_up = read(LLAMA[:slots] + empty_run + LLAMA[slots:], "llama.cpp", ready_s=65.0)

    assert found.phases == {"import_s": 0.192023, "weights_s": 64.0, "warmup_s": 0.5, "first_answer_s": 0.25}
    assert warmed_up.phases == found.phases | {"weights_s": 62.0, "warmup_s": 2.5}
    assert "has no time" in read(LLAMA.replace("0.00.192.023 I ", ""), "llama.cpp", ready_s=65.0).unread[0]


@pytest.mark.parametrize(
    ("log", "weights_s", "warmup_s"),
    [("start-plain.log", 0.061313, 0.001701), ("start-verbose.log", 0.046289, 0.014102)],
)
def test_the_phases_of_a_real_start_of_llama_cpp(log: str, weights_s: float, warmup_s: float) -> None:
    found = read((DATA / "llama-cpp" / log).read_text(), "llama.cpp", ready_s=0.1)

    assert (found.weights_s, found.warmup_s, found.unread) == (weights_s, warmup_s, ())


@pytest.mark.parametrize(
    ("lines", "cache"),
    [
        ("Directly load the compiled graph(s) for compile range (1, 8192) from the cache, took 4.190 s", "warm"),
        ("Directly load AOT compilation from path /cache/model", "warm"),
        ("[aiter] start build [module_rmsnorm] under /jit", "cold"),
        ("Directly lookup the graph for shape None\nCompiling a graph for general shape takes 0.34 s", "mixed"),
    ],
)
def test_the_log_says_whether_compiled_code_came_from_a_cache(lines: str, cache: str) -> None:
    assert read(lines).compile_cache == cache


@pytest.mark.parametrize("seconds", ["-3.00", "1e9", "nan", "inf", "0,32", "1.234,5", "99999999", "\u0663.\u0662"])
def test_seconds_that_are_not_possible_are_a_sentence_and_not_a_number(seconds: str) -> None:
    found = read(f"(Worker pid=1) INFO 11-21 14:31:25 [a.py:1] Loading weights took {seconds} seconds")

    assert found.weights_s is None
    assert "Loading weights took" in found.unread[0]
    assert "has no possible number of seconds" in found.unread[0]


@pytest.mark.parametrize("stamp", ["11-21 12:31:24", "11-22 14:31:24", "02-31 14:31:24", "11-21 25:31:24"])
def test_a_line_outside_the_start_that_we_measured_is_a_sentence(stamp: str) -> None:
    found = read(f"(Worker pid=1) INFO {stamp} [a.py:68] Starting to load model /models/small...")

    assert found.import_s is None
    assert "has a time outside the start that we measured" in found.unread[0]


def test_a_container_logs_in_utc_and_a_process_in_the_time_zone_of_its_host() -> None:
    host = STARTED.astimezone(timezone(timedelta(hours=5, minutes=30)))
    line = "(Worker pid=1) INFO {} [a.py:68] Starting to load model /models/small..."

    assert read(line.format("11-21 14:31:24"), started=host).import_s == 28.0
    assert read(line.format("11-21 20:01:24"), started=host).import_s == 28.0


def test_a_start_over_the_turn_of_the_year_has_its_import() -> None:
    found = read(
        "(Worker pid=1) INFO 01-01 00:00:10 [a.py:68] Starting to load model /models/small...",
        started=datetime(2026, 12, 31, 23, 59, 50, tzinfo=UTC),
    )

    assert found.import_s == 20.0


def test_a_start_in_the_middle_of_the_second_of_its_first_line_took_no_negative_time() -> None:
    line = f"(Worker pid=1) INFO {STARTED:%m-%d %H:%M:%S} [a.py:68] Starting to load model /models/small..."

    assert read(line, started=STARTED.replace(microsecond=900_000)).import_s == 0.0


def test_a_whole_that_is_shorter_than_its_parts_is_a_sentence() -> None:
    found = read(ON_GPUS.replace("took 20.50 s", "took 2.50 s"))

    assert found.warmup_s is None
    assert "is shorter than the phases in it" in found.unread[0]


KNOWN = st.sampled_from([line for log in (EAGER, SGLANG, ON_GPUS, LLAMA) for line in log.splitlines()])


@given(
    st.lists(st.one_of(st.text(), KNOWN, st.tuples(KNOWN, st.text()).map("".join))), st.sampled_from(sorted(ENGINES))
)
def test_whatever_the_log_holds_is_read_and_no_phase_is_negative(lines: list[str], engine: str) -> None:
    found = read("\n".join(lines), engine)

    assert all(0 <= seconds <= 86_400 * len(lines) + 1 for seconds in found.phases.values())
    assert StartPhases.model_validate_json(found.model_dump_json()) == found
