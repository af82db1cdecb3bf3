"""What the command line prints: tables for people, JSON and CSV for programs."""
