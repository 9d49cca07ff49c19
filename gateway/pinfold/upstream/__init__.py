"""Someone else's file server: its process, the messages to it, and what is known of its tools."""
