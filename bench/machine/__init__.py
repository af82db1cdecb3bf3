"""What a rented machine is named, booted with and made of, and how fast it is, as values."""
