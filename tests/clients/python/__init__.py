"""Programs with one Python client each; those for another virtual environment are run with its interpreter."""
