"""Pages about what happened."""
