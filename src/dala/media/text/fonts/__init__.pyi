"""The names of ``dala.media.text.fonts``, each with the module that defines it."""

from dala.media.text.fonts.faces import families as families
from dala.media.text.fonts.faces import find as find
from dala.media.text.fonts.faces import refresh as refresh
