"""The management API of credentials. Nothing here can read one back. Spec: §4.6"""
