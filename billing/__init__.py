"""What an organization pays for: its subscription's state, and what that entitles it to."""
