"""Pages that belong to no organization: the landing page, the well-known documents' errors, error pages."""
