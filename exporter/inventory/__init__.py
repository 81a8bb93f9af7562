"""Ways to know the cluster, one file each."""
