"""The names of the package; see ``dala.lazy``."""

from dala.studio.application import StudioApp as StudioApp
from dala.studio.application import app as app
from dala.studio.limits import StudioLimits as StudioLimits
from dala.studio.notebook import StudioWidget as StudioWidget
from dala.studio.notebook import widget as widget
