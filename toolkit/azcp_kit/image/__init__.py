"""The image: what is injected into a base, how it is built, and the proof that the base is as before."""
