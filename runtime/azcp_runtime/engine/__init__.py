"""The one pass: fetch, broadcast and write overlap, chunk by chunk, from the same buffer."""
