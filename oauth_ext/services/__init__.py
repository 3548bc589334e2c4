"""What changes rows of clients, keys and tokens: one transaction each, with its audit row."""
