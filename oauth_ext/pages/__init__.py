"""Pages about machine identities."""
