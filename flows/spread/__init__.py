"""A night whose machines are flow runs of their own, on whichever worker takes them."""
