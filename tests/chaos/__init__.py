"""Nights that are killed, lose their records and get false replies; the emulator's bill shows whether one leaked."""
