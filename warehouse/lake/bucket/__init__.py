"""A lake in a bucket: objects named by their content, and one manifest that names the current ones."""
