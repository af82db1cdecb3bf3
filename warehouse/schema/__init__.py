"""Every column of every table, declared once."""
