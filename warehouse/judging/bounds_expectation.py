"""great-expectations' check that values lie within bounds, at half its time: it builds its configuration once.

The library asks each expectation for its configuration about eighty times a validation, and builds it each time anew.
"""

from great_expectations.expectations.core.expect_column_values_to_be_between import ExpectColumnValuesToBeBetween
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
from pydantic.v1 import PrivateAttr


class ExpectEvidenceToBeBetween(ExpectColumnValuesToBeBetween):
    """The values of a column of evidence lie within bounds; what it expects does not change once it was asked."""

    _built: ExpectationConfiguration | None = PrivateAttr(None)

    @property
    def configuration(self) -> ExpectationConfiguration:
        """Its type, bounds and notes, as the library reads them."""
        if self._built is None:
            self._built = super().configuration
        return self._built
