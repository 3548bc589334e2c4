"""Vendor servers of our own that tests start as programs, each with the Python its SDK is installed in."""
