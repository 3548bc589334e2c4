"""The kit for interface modules: pages of an organization, and one translation of domain errors."""
