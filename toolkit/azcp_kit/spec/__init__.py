"""What the user wants, read from job.toml and checked, and the facts of the VM sizes it may run on."""
