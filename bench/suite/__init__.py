"""What a suite file says, and the prompts and traces that it names."""
