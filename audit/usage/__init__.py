"""Usage: roll-ups of the request log, and what dashboards read of them. Spec: §2 Usage aggregates, §4.11"""
