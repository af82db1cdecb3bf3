"""What a benchmark is: pure values and functions."""
