"""Tests of the meter."""
