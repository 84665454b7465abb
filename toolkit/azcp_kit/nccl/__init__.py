"""The all-reduce test of NCCL and RCCL: what a VM size needs for it, and what its log says."""
