"""The gateway as an OAuth client of vendors. It needs no framework: requests leave through a given `Ask`."""
