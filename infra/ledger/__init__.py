"""What is rented, written down before it is asked for, so that it is found again whatever dies."""
