"""Commands on two machines at once: both are rented or none, they find each other, and a failure is a row."""

import pytest

from infra.ledger.ledger import Ledger
from tests.flows.conftest import NightFixture, run_nightly
from tests.flows.serving import free_port
from warehouse.lake.query import run_sql

# Each node sends its rank to the first one, which prints their sum: a true rendezvous at the address of the first.
MEET = """
import os, socket, time
rank, count, master = (os.environ[name] for name in ("NODE_RANK", "NNODES", "MASTER_ADDR"))
if rank == "0":
    server = socket.create_server((master, {port}))
    ranks = [int(server.accept()[0].recv(9)) for _ in range(int(count) - 1)]
    print("ranks:", ranks, "nodes:", 1 + len(ranks), flush=True)
else:
    {dies}
    while True:
        try:
            socket.create_connection((master, {port})).sendall(rank.encode())
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
"""
SCENARIO = """
[[scenarios]]
name = "{name}"
driver = "command"
repeats = 1
[scenarios.command]
argv = ["python3", "-c", '''{program}''']
nodes = 2
timeout_s = 60
metrics = [{{ name = "nodes", unit = "count", pattern = 'nodes: (\\d+)' }}]
"""


def write_scenarios(house: NightFixture, **programs: str) -> None:
    head = house.write_suite().read_text().partition("[[scenarios]]")[0]
    house.suite.write_text(head + "".join(SCENARIO.format(name=name, program=text) for name, text in programs.items()))


@pytest.mark.prefect
@pytest.mark.usefixtures("prefect_api", "calibrated")
def test_two_nodes_meet_and_the_death_of_one_and_a_log_without_the_metric_are_rows(house: NightFixture) -> None:
    write_scenarios(
        house,
        meets=MEET.format(port=free_port(), dies="pass"),
        dies=MEET.format(port=free_port(), dies="os.kill(os.getpid(), 9)"),
        silent="print('step 1 of 1')",
    )

    summary = run_nightly(house)

    rows = run_sql(
        house.data,
        "SELECT scenario, outcome, value, reason FROM measurements LEFT JOIN command_metrics USING (run_id) ORDER BY 1",
    ).rows
    assert summary.verdicts == {"accepted": 1, "failed": 2}
    assert [tuple(row[:3]) for row in rows] == [
        ("dies", "failed", None),
        ("meets", "measured", 2.0),
        ("silent", "failed", None),
    ]
    assert "node 1 of 2 (127.0.0.1) failed: the command failed with exit code 137" in rows[0][3]
    assert "matches nothing in the log" in rows[2][3]
    leases = Ledger(house.data / "ledger.sqlite").leases()
    assert len({lease.machine_id for lease in leases}) == len(leases) == 2
    assert house.leftovers() == []
