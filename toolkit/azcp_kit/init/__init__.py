"""`azcp-kit init`: a job.toml to begin with, from options, from questions, and from what is known."""
