"""The names of ``dala.media.live``, each with the module that defines it."""

from dala.media.live.functions import open as open
from dala.media.live.functions import send as send
from dala.media.live.output import LiveOutput as LiveOutput
from dala.media.live.sending import LiveRun as LiveRun
