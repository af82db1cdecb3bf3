"""Facts we look up: a CSV a kind of fact, each row with its source; an empty cell does not exist or does not apply."""
