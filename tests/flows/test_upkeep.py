"""What a flow of upkeep shows is with Prefect's server before its run ends, and its process with it."""

import json
import threading
from collections.abc import Iterator

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId

from flows.upkeep import calibrate
from tasks.server_calls import CALLS

pytestmark = pytest.mark.prefect
PATIENCE_S = 60.0


@pytest.fixture
def held_up() -> Iterator[None]:
    """The thread that makes the calls no night waits for is behind with them."""
    release = threading.Event()
    CALLS.post("what the test waits for", lambda: release.wait(PATIENCE_S))
    yield
    release.set()
    assert CALLS.settle(PATIENCE_S)


@pytest.mark.usefixtures("prefect_api", "house", "held_up")
def test_a_calibration_is_shown_before_its_run_ends() -> None:
    state = calibrate((1,), ttft_ms=20.0, itl_ms=5.0, return_state=True)

    of_this_run = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[state.state_details.flow_run_id]))
    with get_client(sync_client=True) as api:
        (table,) = api.read_artifacts(artifact_filter=of_this_run)
    assert [row["streams"] for row in json.loads(str(table.data))] == [1]
