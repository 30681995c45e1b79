"""The names of ``dala.media.video``, each with the module that defines it."""

from dala.media.video.files import Reader as Reader
from dala.media.video.files import Writer as Writer
from dala.media.video.files import open as open
from dala.media.video.files import write as write
