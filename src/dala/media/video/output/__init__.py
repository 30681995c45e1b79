"""What the writer of videos needs: pixel formats, hardware encoders, files and streams."""
