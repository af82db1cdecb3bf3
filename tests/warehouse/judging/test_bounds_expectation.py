from great_expectations.expectations.core.expect_column_values_to_be_between import ExpectColumnValuesToBeBetween

from warehouse.judging.bounds_expectation import ExpectEvidenceToBeBetween


def test_a_check_of_bounds_is_configured_as_the_librarys_own_and_only_once() -> None:
    ours = ExpectEvidenceToBeBetween(column="ttft_p50_ms", min_value=0, max_value=9.5, meta={"at": 3})
    theirs = ExpectColumnValuesToBeBetween(column="ttft_p50_ms", min_value=0, max_value=9.5, meta={"at": 3})

    same = {**theirs.configuration.to_json_dict(), "type": ours.expectation_type}
    assert ours.configuration.to_json_dict() == same
    assert ours.configuration is ours.configuration
