"""The management API of service clients and agent keys. Secrets are shown once. Spec: §4.8"""
