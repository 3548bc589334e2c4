"""Pages about organizations and the person."""
