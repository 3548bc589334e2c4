"""The vendor catalog: which vendors exist, where they answer and how a credential becomes headers."""
