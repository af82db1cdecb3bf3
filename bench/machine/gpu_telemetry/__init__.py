"""The telemetry of GPUs: what to run once a second, and how each tool's lines become samples."""
