"""The record: one line for each decision, appended by a thread of its own, and read back."""
