"""Results of read-only tools, kept for a while and never past a write. Spec: §4.14 · D103"""
