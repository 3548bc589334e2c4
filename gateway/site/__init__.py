"""Pages outside organizations: landing page, documentation, error pages."""
