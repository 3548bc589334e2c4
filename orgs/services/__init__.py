"""What may change, one transaction each: the state, its admin audit row, and the epochs of those it concerns."""
