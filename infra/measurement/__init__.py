"""Measure one run into its run folder, and check the answers of its server."""
