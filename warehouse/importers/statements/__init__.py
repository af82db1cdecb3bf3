"""What the text beside numbers states: commands, logs and captures of tools, images, and sentences with numbers."""
