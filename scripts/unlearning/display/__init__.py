"""What people see: tables, figures, the headline and the page that holds them all.

The largest room because every kind of table and figure is a file; these lie in rooms of their own.
"""
