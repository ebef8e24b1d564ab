"""Plug-ins: found by name, with options, declarations and a digest of their source."""
