"""Parse what several formats share: cells, units, times, nested objects."""
