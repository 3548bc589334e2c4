"""People and organizations: who belongs where, and what each may use."""
