"""Report of a suite: its tables filled by query, each number with its interval and the published figure beside it."""
