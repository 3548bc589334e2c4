"""Requests to the payment provider."""
