"""Tables: what each shows, how it is typeset, and its formats."""
