"""What is known of GPUs, models, prices and published results, as frozen rows."""
