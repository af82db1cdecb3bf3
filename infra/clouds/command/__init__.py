"""A cloud behind a team's own scripts: `offers`, `rent`, `list` and `release`, with JSON on stdin and stdout."""
