"""Load drivers: one file each has its name, its command line, its report files and how they are read."""
