"""Result tables of AMD MAD."""
