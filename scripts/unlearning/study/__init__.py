"""What may be configured: schema, reading, checks across fields, and sentences about what is wrong."""
