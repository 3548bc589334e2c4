"""Pages about using the gateway."""
