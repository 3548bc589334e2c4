"""Cache of results of read-only tools, invalidated by every write. Spec: §4.14 · D103"""
