"""A night on disk: files and folders that are written durably, by the pipeline and by the warehouse alike."""
