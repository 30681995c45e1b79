"""The names of the package; see ``dala.lazy``."""

from dala import batch as batch
from dala import errors as errors
from dala import gpu as gpu
from dala import media as media
from dala import ml as ml
from dala import samples as samples
from dala import studio as studio
from dala import web as web
from dala.answers.report import selftest as selftest
from dala.budget import Limits as Limits
from dala.budget import limits as limits
from dala.errors import *  # noqa: F403
from dala.gpu.compute.engines.auto import Device as Device
from dala.gpu.compute.engines.auto import device as device
from dala.gpu.compute.engines.auto import devices as devices
from dala.gpu.compute.engines.auto import use as use
from dala.machine.report import doctor as doctor
from dala.memory import set_memory_limit as set_memory_limit
from dala.resources import diagnostics as diagnostics

__version__: str
