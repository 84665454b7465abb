"""Who fetches what, cut into which chunks, within which memory: pure functions, the same on each rank."""
