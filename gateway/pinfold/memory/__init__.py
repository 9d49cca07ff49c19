"""Memory roots: where they are by convention, and how they lie on the disk now."""
