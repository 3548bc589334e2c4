"""Pages about vendor connections."""
