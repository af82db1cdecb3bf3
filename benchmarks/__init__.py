"""The project's bars: speed, memory and cost, beside a baseline that runs in the same minute."""
