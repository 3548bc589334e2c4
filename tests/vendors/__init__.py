"""Servers that tests talk to as a vendor or an identity provider, run as processes of their own."""
