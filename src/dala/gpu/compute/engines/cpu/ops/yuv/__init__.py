"""Conversion of 4:2:0 pictures to and from RGB on the CPU."""

from dala.gpu.compute.engines.cpu.ops.yuv.runners import decode_rows as decode_rows
from dala.gpu.compute.engines.cpu.ops.yuv.runners import encode_rows as encode_rows
