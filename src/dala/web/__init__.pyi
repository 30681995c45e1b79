"""The names of the package; see ``dala.lazy``."""

from dala.web.explore import WebPlan as WebPlan
from dala.web.exporting import Export as Export
from dala.web.exporting import export as export
from dala.web.exporting import plan as plan
from dala.web.exporting import read_chain as read_chain
from dala.web.scenes import is_scene_file as is_scene_file
from dala.web.serving import Server as Server
from dala.web.serving import serve as serve
