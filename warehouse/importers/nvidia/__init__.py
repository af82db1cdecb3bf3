"""NVIDIA-format result tables."""
