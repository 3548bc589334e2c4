"""The management API of organizations. Wire names are camelCase and exist only here. Spec: §4.3-4.9 · D13"""
