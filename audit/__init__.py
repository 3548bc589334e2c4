"""What happened: one row per tool call, committed before its answer, and one per administrative change."""
