"""Result files of GuideLLM."""
