"""The service: Prefect's server, a worker with our deployments, and the pages, started and stopped as one."""
