"""Where results live: columns, rows, expectations, load, views, report."""
