"""Elementary functions, written once for the engines that compute them from operations."""
