"""What tabs show: pictures, videos, cameras and scenes, as pictures by time."""
