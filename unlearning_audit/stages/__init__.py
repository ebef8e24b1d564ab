"""Stages that judge and show: what each reads from files, computes by the rooms below, and keeps in files."""
