"""great-expectations' check that values lie within bounds, on one metric of our own: the whole frame.

The library's own check computes seven metrics of a column, which need a dozen others, and plans them again for each
of a hundred checks; that takes most of a small load.
"""

from typing import Any

import numpy as np
from great_expectations.core.metric_domain_types import MetricDomainTypes
from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
from great_expectations.expectations.core.expect_column_values_to_be_between import ExpectColumnValuesToBeBetween
from great_expectations.expectations.expectation import Expectation, _format_map_output
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration, parse_result_format
from great_expectations.expectations.metrics.metric_provider import metric_value
from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider
from great_expectations.validator.metric_configuration import MetricConfiguration
from great_expectations.validator.validator import ValidationDependencies
from pydantic.v1 import PrivateAttr

FRAME = "evidence.frame"
ID = "run_id"


class EvidenceFrame(TableMetricProvider):
    """The frame under validation, the same for every check."""

    metric_name = FRAME

    @metric_value(engine=PandasExecutionEngine)
    def _pandas(cls, execution_engine: PandasExecutionEngine, metric_domain_kwargs: Any, **_rest: Any) -> Any:  # noqa: N805
        frame, _domain, _accessor = execution_engine.get_compute_domain(metric_domain_kwargs, MetricDomainTypes.TABLE)
        return frame


class ExpectEvidenceToBeBetween(ExpectColumnValuesToBeBetween):
    """The values of a column of evidence lie within bounds, both inclusive; null passes.

    Its configuration is built once, though the library asks for it about eighty times a validation.
    """

    _built: ExpectationConfiguration | None = PrivateAttr(None)

    @property
    def configuration(self) -> ExpectationConfiguration:
        """Its type, bounds and notes, as the library reads them."""
        if self._built is None:
            self._built = super().configuration
        return self._built

    def get_validation_dependencies(
        self, execution_engine: Any = None, runtime_configuration: Any = None, **_rest: Any
    ) -> ValidationDependencies:
        """Only the frame."""
        asked = Expectation.get_validation_dependencies(self, execution_engine, runtime_configuration)
        asked.set_metric_configuration(FRAME, MetricConfiguration(FRAME, {"batch_id": self.batch_id}))
        return asked

    def _validate(self, metrics: Any, runtime_configuration: Any = None, execution_engine: Any = None) -> Any:
        del execution_engine
        frame = metrics[FRAME]
        values = frame[self.column].to_numpy(dtype=np.float64)
        is_outside = np.zeros(len(values), dtype=bool)  # no comparison with NaN is true
        if self.min_value is not None:
            is_outside |= values < self.min_value
        if self.max_value is not None:
            is_outside |= values > self.max_value
        found, ids = values[is_outside].tolist(), frame[ID].to_numpy()[is_outside].tolist()
        named: Any = [{self.column: value, ID: one} for value, one in zip(found, ids, strict=True)]
        return _format_map_output(
            result_format=parse_result_format(self._get_result_format(runtime_configuration)),
            success=not found,
            element_count=len(values),
            nonnull_count=int((~np.isnan(values)).sum()),
            unexpected_count=len(found),
            unexpected_list=found,
            unexpected_index_list=named,
            unexpected_index_column_names=[ID],
        )
