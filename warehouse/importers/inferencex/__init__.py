"""Result files of InferenceX."""
