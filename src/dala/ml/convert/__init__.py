"""Conversion of weights from other libraries to ONNX, without executing code in the files.

``torch_file`` reads torch pickles with a restricted unpickler, ``tflite`` and ``tfjs`` read graphs,
and ``onnx_file`` writes ONNX.
"""
