"""Which nights measure a suite as it is: searches among versions, and second measurements of suspects, do not."""

from warehouse.sql import Sql

# A condition on the rows of `measurements` and of views with its columns.
USUAL = Sql("""coalesce(NOT list_contains(series_identity, 'bisect'), TRUE)
        AND night NOT IN (SELECT night FROM series_verdicts WHERE rerun_of IS NOT NULL)""")
