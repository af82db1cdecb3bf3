"""Load drivers as programs on a host, and the measurement of their own error."""
