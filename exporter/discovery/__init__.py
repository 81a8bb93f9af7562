"""Ways to find targets, one file each."""
