"""One rank per HCA: which device and which CPUs each rank of a node uses."""
