"""Pure decisions: facts in, decision out. No I/O, no clock, no environment."""
