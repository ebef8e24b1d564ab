"""How things are found by name, what their options are, and the digest of their source."""
