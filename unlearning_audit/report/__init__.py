"""Output for readers: tables, figures, the headline, and the report page with all of them.

The largest room because every kind of table and figure is a file; these lie in rooms of their own.
"""
