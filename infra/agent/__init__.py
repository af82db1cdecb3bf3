"""What a machine is asked to do, on this computer or over SSH."""
