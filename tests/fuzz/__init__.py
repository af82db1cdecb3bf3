"""Fuzzing by coverage; run by hand, for as long as one likes."""
