"""The audit logs: one row for each tool call, committed before its response, and one for each administrative change."""
