"""Parts of foreign files that several formats share: cells, units, times, trees."""
