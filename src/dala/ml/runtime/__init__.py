"""ONNX Runtime: providers, sessions, runs on a GPU, and the files it is given."""
