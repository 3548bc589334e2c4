"""Vendor credentials: which one wins, how they are sealed, and who may change them."""
