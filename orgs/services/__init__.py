"""Changes of organizations. State, admin audit row and epochs of the affected change in one transaction."""
