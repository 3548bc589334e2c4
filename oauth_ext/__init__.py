"""Everything that touches OAuth: clients, agent keys, tokens, signing keys. Nobody else imports the library."""
