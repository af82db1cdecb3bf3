"""Processes that we start: run, detached, cancelled, locked, and watched for liveness."""
