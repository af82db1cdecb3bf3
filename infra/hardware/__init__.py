"""What a machine is made of: GPUs, disks, cores, and what is recorded of them."""
