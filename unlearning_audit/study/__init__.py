"""What may be configured: schema, reading, checks across fields, and messages about errors."""
