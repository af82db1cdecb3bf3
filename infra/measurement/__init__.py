"""One measured run into its run folder, and what its answers are worth."""
