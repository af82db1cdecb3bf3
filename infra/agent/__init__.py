"""The operations that run on a machine, on this computer or over SSH."""
