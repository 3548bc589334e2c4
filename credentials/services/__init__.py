"""Changes of credentials. State, admin audit row and the organization's epoch change in one transaction."""
