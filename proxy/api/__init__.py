"""The proxy's part of the management API: routes that ask vendors or read their health."""
