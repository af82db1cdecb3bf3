"""Result files of the vLLM benchmark commands."""
