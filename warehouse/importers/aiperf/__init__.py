"""Result files of AIPerf."""
