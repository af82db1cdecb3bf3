from typing import Any

import numpy as np
import pandas as pd
import pytest
from great_expectations.expectations.core.expect_column_values_to_be_between import ExpectColumnValuesToBeBetween

from warehouse.judging.bounds_expectation import ExpectEvidenceToBeBetween
from warehouse.judging.expectations import great_expectations

WANTED = {"result_format": "COMPLETE", "unexpected_index_column_names": ["run_id"]}


def test_a_check_of_bounds_is_configured_as_the_librarys_own_and_only_once() -> None:
    ours = ExpectEvidenceToBeBetween(column="ttft_p50_ms", min_value=0, max_value=9.5, meta={"at": 3})
    theirs = ExpectColumnValuesToBeBetween(column="ttft_p50_ms", min_value=0, max_value=9.5, meta={"at": 3})

    same = {**theirs.configuration.to_json_dict(), "type": ours.expectation_type}
    assert ours.configuration.to_json_dict() == same
    assert ours.configuration is ours.configuration


@pytest.mark.parametrize(("low", "high"), [(0.5, 3), (0, None), (None, 0.5), (0.0, 5.0), (6, 7)])
def test_a_check_of_bounds_finds_what_the_librarys_own_finds(low: float | None, high: float | None) -> None:
    frame = pd.DataFrame({"run_id": list("abcdef"), "x": [1.0, np.nan, 5.0, 0.0, 1e300, -1.0]})

    ours, theirs = (
        _result(kind, frame, low, high) for kind in (ExpectEvidenceToBeBetween, ExpectColumnValuesToBeBetween)
    )

    del theirs["result"]["unexpected_index_query"]  # Python code that would select the rows
    assert ours == theirs


def _result(kind: Any, frame: pd.DataFrame, low: float | None, high: float | None) -> dict[str, Any]:
    gx = great_expectations()
    asset = gx.get_context(mode="ephemeral").data_sources.add_pandas("night").add_dataframe_asset("measurements")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch(batch_parameters={"dataframe": frame})
    suite = gx.ExpectationSuite(name="night", expectations=[kind(column="x", min_value=low, max_value=high)])
    result = batch.validate(suite, result_format=WANTED).results[0].to_json_dict()
    return {key: result[key] for key in ("success", "result", "exception_info")}
