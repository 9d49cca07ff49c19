"""Pure text: bytes to text and back, splicing edits, line endings, diffs, hints."""
