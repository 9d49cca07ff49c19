"""What is true of a path right now, found out through descriptors that stay open."""
