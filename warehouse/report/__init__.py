"""The HTML page of a night."""
