"""Pages of service accounts, connected apps, consent and devices."""
