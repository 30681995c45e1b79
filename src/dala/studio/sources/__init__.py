"""Sources of tabs: pictures, videos, cameras and scenes, as pictures by time."""
