"""What a rented machine is named, booted with and made of, as values."""
