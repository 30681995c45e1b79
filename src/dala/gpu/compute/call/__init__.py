"""One call of a kernel: its checks, its geometry, its parameters and its plan.

Every refusal happens here, before anything is written.
"""
