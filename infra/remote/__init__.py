"""Hosts over SSH: connections, keys, commands, files, detached processes, and the code that is deployed there."""
