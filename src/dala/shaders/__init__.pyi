from dala.shaders.files import load as load
from dala.shaders.interactive import isf as isf
from dala.shaders.toys import shadertoy as shadertoy
