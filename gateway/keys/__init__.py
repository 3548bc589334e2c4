"""Keys of the environment: where they come from, which one seals, which processes hold them, how old they are."""
