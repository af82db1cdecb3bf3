"""Load drivers as programs on a host, and how large their own error is."""
