"""What may change, one transaction each: the state, its admin audit row, and the organization's epoch."""
