"""Subscriptions, and the functions that an organization's plan includes."""
