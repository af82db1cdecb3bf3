"""Each line of docs/reference/what-if.md: what goes wrong, what the night does, keeps and bills, and its report.

A line with `expected` is played, and its numbers are compared with what the play left. Every other line names the tests
that run it.
"""

from dataclasses import dataclass

QUIET_USD = 2.35  # of a night in which nothing goes wrong
# What the page must say something about, in its order.
SITUATIONS = (
    "The disk is full",
    "A database is locked",
    "The night or its worker is killed",
    "The computer reboots",
    "Prefect's server is down",
    "The network is lost for an hour",
    "The cloud is down at teardown",
    "The token is revoked",
    "The token is replaced",
    "The model is gone",
    "The engine hangs",
    "Memory runs out",
    "A GPU falls off the bus",
    "The machine is reclaimed",
)
PLAYED = "tests/what_if/test_what_if.py::test_a_line_is_what_happens"
FLOWS, INFRA, CHAOS = "tests/flows", "tests/infra", "tests/chaos"


@dataclass(frozen=True)
class Expected:
    """What the play of a line leaves: its rows, its machines, and upper limits of what is billed."""

    case: str
    exit_code: int  # of the night's process; negative where a signal ended it
    rows: str
    machines: int
    most_min: int | None  # billed on after it happened; None: billed for ever, or a night that goes on
    most_usd: float
    says: tuple[str, ...] = ()


@dataclass(frozen=True)
class Line:
    """One line of the page."""

    situation: str
    when: str
    does: str
    keeps: str
    bills: str
    tells: str
    tests: tuple[str, ...] = ()
    expected: Expected | None = None

    @property
    def runs(self) -> tuple[str, ...]:
        """The tests that run this line."""
        played = () if self.expected is None else (f"{PLAYED}[{self.expected.case}]",)
        return (*played, *self.tests)


DISK, LOCK, KILL, BOOT, SERVER, NET, DOWN, REVOKED, REPLACED, MODEL, HANG, MEMORY, GPU, RECLAIM = SITUATIONS
LINES = (
    Line(
        DISK,
        "before the night",
        "It rents nothing and ends, exit code 3.",
        "Everything of before.",
        "Nothing.",
        "Whoever started it, with the free and the needed GiB; Prefect shows the run as *Failed*.",
        (
            f"{FLOWS}/test_nightly.py::test_a_full_disk_is_said_before_anything_is_rented",
            f"{CHAOS}/test_interruptions.py::test_on_a_full_disk_nothing_is_rented",
        ),
    ),
    Line(
        DISK,
        "while it measures",
        "It releases the machine and ends, exit code {exit_code}.",
        "Every run that was complete ({rows}).",
        "Until {most_min} min after the disk was full.",
        "Whoever started it, with the file that could not be written.",
        (f"{FLOWS}/test_rental.py::test_a_night_whose_folder_cannot_be_written_releases_its_machine",),
        Expected(
            "disk full", 3, "1 measured, 1 not-run", 1, 1, 1.8, ("ledger.sqlite cannot be used", "free some disk")
        ),
    ),
    Line(
        DISK,
        "while it loads",
        "The lake stays as it was; the load ends with exit code 3.",
        "Every run folder; `nightbench load NIGHT` loads them later.",
        "Nothing: the machine is released before the load.",
        "Whoever started it, with the file and the next step.",
        ("tests/warehouse/test_load.py::test_a_disk_that_fills_up_leaves_the_lake_as_it_was",),
    ),
    Line(
        LOCK,
        "the ledger (SQLite), before anything is rented",
        "It waits for 30 s, rents nothing and ends, exit code {exit_code}.",
        "Everything of before.",
        "Nothing.",
        "Whoever started it, with the file that is locked.",
        expected=Expected("ledger locked before", 3, "2 not-run", 0, None, 0.0, ("database is locked",)),
    ),
    Line(
        LOCK,
        "the ledger (SQLite), while it measures",
        "It waits for 30 s, releases the machine without its record, and ends, exit code {exit_code}.",
        "Every run that was complete ({rows}).",
        "Until {most_min} min after the lock, and the 30 s that it is waited for at each step.",
        "Whoever started it, with the file that is locked; the rows that were not run have the reason.",
        expected=Expected("ledger locked", 3, "1 measured, 1 not-run", 1, 1, 1.8, ("database is locked",)),
    ),
    Line(
        LOCK,
        "`warehouse.duckdb`, by another client",
        "It loads: the file has only views, and a new one takes its place.",
        "Everything; the other client goes on with the file that it opened.",
        "Nothing.",
        "No message: nothing failed.",
        (
            "tests/warehouse/lake/test_database.py::test_a_client_that_locks_the_file_neither_waits_nor_makes_a_load_wait",
            "tests/warehouse/lake/test_database.py::test_a_reader_neither_waits_nor_makes_a_load_wait",
        ),
    ),
    Line(
        LOCK,
        "Prefect's (SQLite), by another program, while it measures",
        "It goes on, releases, loads, judges and reports; what Prefect shows is sent again until the database is free.",
        "Everything.",
        "As planned: nothing waits for the server while a machine is rented.",
        "The night's log says that the server does not respond; Prefect shows the true state once it is free.",
        (
            f"{FLOWS}/test_scheduled.py::test_what_a_locked_database_did_not_take_is_shown_once_it_is_free",
            (
                f"{FLOWS}/test_lost_server.py::"
                "test_a_night_whose_server_is_lost_while_it_measures_is_loaded_and_reported_and_the_server_hears_of_it_later"
            ),
        ),
    ),
    Line(
        KILL,
        "the night, by `kill -9`",
        "Its watchdog releases the machine.",
        "Every run that was complete ({rows}); `nightbench run --resume NIGHT` measures the rest.",
        "Until {most_min} min after its end.",
        "Its rows say that it was stopped; Prefect shows the run as *Crashed* once its worker or a `reap` sees it.",
        (
            (
                f"{INFRA}/leases/test_watchdog.py::"
                "test_after_a_kill_9_of_the_renting_process_the_machine_is_released_with_nobody_elses_help"
            ),
            f"{FLOWS}/test_deployed_renting.py::test_where_a_night_is_killed_its_worker_gives_the_machine_back",
        ),
        Expected("night killed", -9, "1 measured, 1 not-run", 1, 1, 1.8, ("the night was stopped",)),
    ),
    Line(
        KILL,
        "the worker, and the night goes on",
        "It goes on; a new worker runs the next nights. A `reap` leaves a night that runs alone.",
        "Everything.",
        "As planned.",
        "Prefect shows the run as *Running*; a night whose worker and process are gone is *Crashed* after a `reap`.",
        (
            (
                f"{FLOWS}/test_deployed_renting.py::"
                "test_where_the_worker_is_killed_too_the_next_reap_gives_the_machine_back_and_not_before"
            ),
        ),
    ),
    Line(
        BOOT,
        "in the middle of the night",
        "Nothing of it runs after the boot. Of another boot no process can be seen, so the lease's expiry counts: "
        "then the reaper releases the machine.",
        "Every run that was complete; resumed in the morning, the night has them all ({rows}).",
        "Until the reaper's first round after the lease's expiry, and for the resumed night: {machines} machines, "
        "{most_usd:.2f} USD.",
        "The reaper's log; the rows say that the night was stopped until it is resumed.",
        (f"{FLOWS}/test_cli.py::test_a_night_killed_with_9_and_its_watchdog_too_is_reaped_and_resumed",),
        Expected("computer rebooted", -9, "2 measured", 2, None, 8.1, ("resumed: exit code 0",)),
    ),
    Line(
        BOOT,
        "and does not start again",
        "The machine's own switch deletes it at the lease's expiry, where it is armed "
        "([nets](nets.md)); else a `reap` on any computer with the token.",
        "What is in the bucket; runs that were only on this computer's disk are there.",
        "Until 1 min after the lease's expiry; without the switch, until `reap` runs.",
        "No message: `plan` and `doctor` show before a night which nets stand.",
        (
            f"{INFRA}/leases/test_nets.py::test_a_net_catches_what_dies_within_the_time_on_the_page",
            f"{CHAOS}/test_self_destruct.py::test_a_machine_deletes_itself_by_a_token_that_can_do_nothing_else",
        ),
    ),
    Line(
        SERVER,
        "at schedule time, or its worker is",
        "The run is *Late*; it starts as soon as server and worker are there.",
        "The schedule, in the server's database.",
        "Nothing until it starts.",
        "Prefect shows the run as *Late*.",
        (
            (
                f"{FLOWS}/test_scheduled.py::"
                "test_what_is_scheduled_becomes_a_run_that_is_late_without_a_worker_and_ends_with_one"
            ),
        ),
    ),
    Line(
        SERVER,
        "while a night measures: killed or stopped",
        "It goes on, releases, loads, judges and reports; nothing waits for the server while a machine is rented.",
        "Everything.",
        "As planned.",
        "The night's log says that the server does not respond; a server that comes back shows the true state.",
        (
            (
                f"{FLOWS}/test_lost_server.py::"
                "test_a_night_whose_server_is_lost_while_it_measures_is_loaded_and_reported_and_the_server_hears_of_it_later"
            ),
            (
                f"{CHAOS}/test_interruptions.py::"
                "test_a_night_does_not_wait_for_a_prefect_server_that_is_lost_while_it_measures"
            ),
        ),
    ),
    Line(
        NET,
        "of this computer, to the cloud and to the machine",
        "A step is repeated for some minutes, then the machine counts as lost. Once the cloud answers, the machine is "
        "released, another is rented, and what is missing is measured.",
        "Every run ({rows}).",
        "{machines} machines, one after the other: {most_usd:.2f} USD instead of 2.35 USD.",
        "The night's log, with each call that failed.",
        (
            f"{INFRA}/agent/test_executor.py::test_a_remote_job_continues_while_its_connection_is_cut",
            f"{INFRA}/leases/test_nets.py::test_a_net_catches_what_dies_within_the_time_on_the_page",
        ),
        Expected("network lost", 0, "2 measured", 2, None, 6.5),
    ),
    Line(
        DOWN,
        "for three hours: each deletion fails",
        "It tries for an hour and ends, exit code {exit_code}; its watchdog tries on, for a week.",
        "Every run ({rows}), loaded, judged and reported.",
        "Until {most_min} min after the cloud was down: the machine is deleted within 10 min after it is back.",
        "Whoever started it: which machine still exists, that it is billed, and the next step; after a week "
        "`watchdog.log` has an ALARM.",
        (f"{INFRA}/leases/test_watchdog.py::test_a_release_that_fails_for_a_week_is_an_alarm",),
        Expected(
            "cloud down at teardown", 3, "2 measured", 1, 190, 10.4, ("still exists after its release", "still billed")
        ),
    ),
    Line(
        REVOKED,
        "while it measures, and is not replaced",
        "It measures on, cannot release, and ends, exit code {exit_code}.",
        "Every run ({rows}), loaded, judged and reported.",
        "Without end, if the machine's own switch is not armed; with it, until the lease's expiry.",
        "Whoever started it: MACHINE … IS STILL BILLED, and that the token was revoked; each `reap` says so too.",
        (
            (
                f"{INFRA}/leases/test_lease_faults.py::"
                "test_row_37_a_token_revoked_before_the_release_raises_an_error_that_names_the_machine"
            ),
            f"{INFRA}/leases/test_lease_faults.py::test_row_2_a_rejected_token_is_not_retried",
        ),
        Expected("token revoked", 3, "2 measured", 1, None, 10.7, ("wrong or revoked", "IS STILL BILLED")),
    ),
    Line(
        REPLACED,
        "while it measures: the old one is revoked, the settings have the new one",
        "It measures on with the old one, cannot release, and ends, exit code {exit_code}; the next `reap` has the new "
        "one and releases.",
        "Every run ({rows}), loaded, judged and reported.",
        "Until the next `reap`: here {most_min} min after the old one was revoked.",
        "Whoever started it: MACHINE … IS STILL BILLED; the `reap` says what it released.",
        expected=Expected("token replaced", 3, "2 measured", 1, 75, 5.2, ("wrong or revoked", "IS STILL BILLED")),
    ),
    Line(
        MODEL,
        "from the hub, or access to it is withdrawn",
        "It releases the machine at once and ends, exit code {exit_code}; of several models, the others are measured.",
        "A row for each run with the reason ({rows}).",
        "Until {most_min} min after the hub's answer.",
        "Whoever started it, with the hub's answer; the rows have it too.",
        (
            f"{INFRA}/models/test_hub_download.py::test_an_unknown_model_is_reported_at_once",
            f"{INFRA}/models/test_hub_download.py::test_a_gated_model_is_reported_at_once_with_what_to_do",
            f"{FLOWS}/test_models.py::test_a_model_that_cannot_be_had_fails_its_own_runs_only",
        ),
        Expected("model gone", 3, "2 not-run", 1, 1, 0.3, ("not started: hf:org/model: the hub answers 404",)),
    ),
    Line(
        HANG,
        "while it starts",
        "It is started once more with twice the time, then its runs are failed and the night goes on.",
        "A row for each run with the engine's last words ({rows}).",
        "As planned: {most_usd:.2f} USD.",
        "The night ends with exit code {exit_code}; the report has the class of the failure.",
        (
            f"{INFRA}/engines/test_server.py::test_a_server_that_is_never_ready_is_stopped_at_its_timeout",
            f"{CHAOS}/test_engine_failures.py::test_a_start_that_may_outlast_the_lease_is_not_repeated_and_the_row_says_why",
        ),
        Expected("engine never ready", 1, "2 failed", 1, None, 1.8, ("engine_timeout", "raise ready_timeout_s")),
    ),
    Line(
        HANG,
        "under load",
        "Each request ends after `request_timeout_s` and each load after `run_timeout_s`; that run is failed, and the "
        "night goes on.",
        "The requests that were answered; every other run.",
        "As planned, `run_timeout_s` at most for that run.",
        "The night ends with exit code 1; the run's row says which timeout.",
        (
            f"{INFRA}/loadgen/test_driver.py::test_a_load_on_a_server_that_hangs_ends_at_the_runs_timeout",
            "tests/meter/test_outcomes.py::test_a_stalled_stream_times_out_and_keeps_what_came",
        ),
    ),
    Line(
        MEMORY,
        "of the GPU, as the engine starts",
        "The same runs are measured on the next rung of the engine's ladder, under ids of their own.",
        "A row for each run with the engine's words, and the smaller runs beside them ({rows}).",
        "As planned: {most_usd:.2f} USD.",
        "The night ends with exit code {exit_code}; the report has the class of the failure and its remedy.",
        (
            f"{FLOWS}/test_real_engine.py::test_an_engine_that_runs_out_of_memory_says_so_in_its_own_words_and_climbs_the_ladder",
        ),
        Expected("out of GPU memory", 1, "2 failed, 2 measured", 1, None, 3.0, ("[oom_kv: ",)),
    ),
    Line(
        MEMORY,
        "of the machine: the kernel kills the engine under load",
        "That run is failed and its smaller stand-in is measured; a new server is started for the next run.",
        "A row with the reason, and every other run ({rows}).",
        "As planned: {most_usd:.2f} USD.",
        "The night ends with exit code {exit_code}; the row says to look in the kernel's log.",
        (
            f"{FLOWS}/test_nightly.py::test_a_server_that_dies_costs_one_run_and_the_night_goes_on",
            f"{INFRA}/agent/test_executor.py::test_a_killed_remote_job_is_reported_with_the_end_of_its_log",
        ),
        Expected("out of memory", 1, "1 failed, 2 measured", 1, None, 3.6, ("[killed: ",)),
    ),
    Line(
        GPU,
        "as the engine starts",
        "The machine is released, another is rented, once a night, and everything is measured there.",
        "Every run ({rows}); the failed start is in the record.",
        "{machines} machines, one after the other: {most_usd:.2f} USD.",
        "The night's log; the record of each run.",
        (
            f"{INFRA}/engines/test_kernel_log.py::test_the_kernels_words_have_a_class_and_a_retry",
            (
                f"{CHAOS}/test_engine_failures.py::"
                "test_a_machine_whose_gpu_fails_a_start_is_replaced_and_the_run_is_measured_on_the_next"
            ),
        ),
        Expected("GPU off the bus", 0, "2 measured", 2, None, 3.7),
    ),
    Line(
        GPU,
        "under load",
        "That run is failed; the machine is released, another is rented, once a night, and the rest is measured there.",
        "A row with the reason, and every other run ({rows}).",
        "{machines} machines, one after the other: {most_usd:.2f} USD.",
        "The night ends with exit code {exit_code}; the row has the driver's line.",
        (
            (
                f"{CHAOS}/test_engine_failures.py::"
                "test_a_gpu_that_hangs_under_load_costs_that_run_and_the_others_are_measured_on_another_machine"
            ),
        ),
        Expected("GPU off the bus under load", 1, "1 failed, 1 measured", 2, None, 3.7, ("[gpu_hang: ",)),
    ),
    Line(
        RECLAIM,
        "while it measures",
        "Another one is rented, and only what is missing is measured; at most three machines a night.",
        "Every run ({rows}).",
        "The first until it was reclaimed, then the next: {most_usd:.2f} USD.",
        "The night's log: the machine is gone and was not released by us.",
        (f"{FLOWS}/test_rented.py::test_a_machine_that_vanishes_costs_one_scenario_and_another_measures_the_rest",),
        Expected("machine reclaimed", 0, "2 measured", 2, None, 4.0),
    ),
)
