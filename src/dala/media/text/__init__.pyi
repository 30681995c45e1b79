"""The names of ``dala.media.text``, each with the module that defines it."""

from dala.media.text import fonts as fonts
from dala.media.text.style import TextStyle as TextStyle
from dala.media.text.text import TextPicture as TextPicture
from dala.media.text.text import atlas_report as atlas_report
from dala.media.text.text import clear_atlas as clear_atlas
from dala.media.text.text import set_text as set_text
