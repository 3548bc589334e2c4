"""Vendor credentials: how they are sealed, which one a call uses, and who may change them."""
