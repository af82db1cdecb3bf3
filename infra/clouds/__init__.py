"""Clouds: what they offer, how machines, volumes and images are created and deleted."""
