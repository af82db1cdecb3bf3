"""One thin Prefect task for each verb."""
