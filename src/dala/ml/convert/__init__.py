"""Weights of other libraries as ONNX files: read without running anything in them, written plainly.

``torch_file`` reads torch's pickles with a restricted unpickler, ``tflite`` and ``tfjs`` read
graphs; ``onnx_file`` writes.
"""
