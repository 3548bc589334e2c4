"""The management API of credentials. No route returns a credential's fields. Spec: §4.6"""
