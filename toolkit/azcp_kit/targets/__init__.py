"""What a job becomes on a cluster: one pod builder, and a module for each kind that wraps it."""
