"""Pages of service clients, connected apps, consent and devices."""
