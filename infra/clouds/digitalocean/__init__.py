"""DigitalOcean: droplets, volumes and snapshots through pydo."""
