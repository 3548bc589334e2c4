"""The documents of /docs: Markdown files of docs/, and the guides of clients. docs/decisions/0094"""
