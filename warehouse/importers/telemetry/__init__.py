"""GPU telemetry as CSV."""
