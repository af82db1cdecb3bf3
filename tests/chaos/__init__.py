"""Nights that are killed, robbed of their records and lied to; the emulator's bill says whether anything leaked."""
