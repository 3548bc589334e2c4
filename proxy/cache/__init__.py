"""Results of read-only tools (§4.14 · D103), and joined answers to tools/list."""
