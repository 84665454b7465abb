"""`azcp-kit tree`: what was added to an image, for nodes that run without a container."""
