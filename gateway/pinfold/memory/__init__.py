"""Memory roots: where they are by convention, how they lie on the disk, what a read of them carries."""
