"""The management API of both audit logs."""
