"""One file for each engine: its argv, its environment, the line that means ready, the failures its log can show."""
