"""Shared helpers below every app, one noun a module."""
