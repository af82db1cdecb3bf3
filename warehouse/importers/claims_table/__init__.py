"""Tables of published claims."""
