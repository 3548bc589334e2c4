"""What people and the worker do with vendors, beside the calls of agents: connect, discover, review, probe, explain."""
