"""Services that write clients, keys and tokens: one transaction each, with its audit row."""
