"""The names of ``dala.media.sources``, each with the module that defines it."""

from dala.media.sources.open import open_source as open_source
from dala.media.sources.types import Source as Source
