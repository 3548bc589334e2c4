"""The vendor catalog: which vendors exist, their addresses, and how a credential becomes headers."""
