"""Vendor health: five states from probes without credentials, shared by all processes. Reading never probes."""
