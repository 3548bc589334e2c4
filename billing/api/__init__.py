"""The management API of billing."""
