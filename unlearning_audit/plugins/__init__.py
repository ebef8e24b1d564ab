"""Plug-ins: how they are found by name, loaded, checked and identified by a digest of their source."""
