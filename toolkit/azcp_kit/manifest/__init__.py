"""Kubernetes manifests: nested mappings with comments, written and read as YAML."""
