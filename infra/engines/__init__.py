"""Inference engines on a host: installed, started, watched and stopped."""
