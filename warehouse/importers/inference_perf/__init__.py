"""Result files of inference-perf."""
