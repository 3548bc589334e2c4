"""The OAuth endpoints and the well-known documents."""
