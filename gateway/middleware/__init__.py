"""Middleware of all web requests but those of the hot path."""
