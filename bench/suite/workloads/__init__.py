"""Kinds of workload beyond plain prompts, as a suite describes them."""
