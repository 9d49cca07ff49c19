"""Where bytes come from and go to, always by a CheckedPath."""
