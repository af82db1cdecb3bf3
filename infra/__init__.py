"""The outside world: hosts, engines on a host, clouds, stores, settings."""
