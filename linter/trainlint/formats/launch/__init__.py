"""What starts a training: commands, launchers and the jobs around them, read without running anything."""
