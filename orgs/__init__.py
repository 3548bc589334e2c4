"""People, organizations, teams, and what each of them may use."""
