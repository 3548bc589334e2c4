"""Base classes and helpers of the interface modules: pages, API views, and their error responses."""
