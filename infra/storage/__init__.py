"""Where run folders are written, and the bucket that keeps copies of them."""
