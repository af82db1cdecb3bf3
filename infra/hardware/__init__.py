"""The hardware of a machine: GPUs, disks and CPU cores, prepared, checked and recorded."""
