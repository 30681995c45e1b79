"""Sources of moving pictures: files, cameras, functions, lists."""
