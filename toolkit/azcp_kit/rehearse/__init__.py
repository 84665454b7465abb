"""Runs a manifest's own pods as containers on this machine, with a local Blob endpoint as the account."""
