"""Benchmark reports of llm-d."""
