"""Pages of the audit logs."""
