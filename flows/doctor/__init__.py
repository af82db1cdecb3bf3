"""What `nightbench doctor` checks: this computer, its GPUs, and the tokens of clouds."""
