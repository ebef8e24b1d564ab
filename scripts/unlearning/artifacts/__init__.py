"""The contract between stages: every file is whole or not there, and checked by one reader when it is read."""
