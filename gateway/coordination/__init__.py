"""State that all processes share: rate-limit windows, epochs, vendor health. `store.py` is the interface."""
