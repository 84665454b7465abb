"""Chunk and window from what this cluster's fabric and disks were measured to do."""
