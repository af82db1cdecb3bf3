"""Facts to look up: one CSV per kind of fact, each row with its source; an empty cell is unknown or does not apply."""
