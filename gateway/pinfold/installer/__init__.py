"""Puts the entry for `pinfold hook` into a host's settings, and takes it out again."""
