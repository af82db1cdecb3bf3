"""A cloud behind four scripts, whose machines are in a file: what it does wrong is written there beforehand."""
