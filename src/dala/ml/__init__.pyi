"""The names of the package; see ``dala.lazy``."""

from dala.ml import gpu as gpu
from dala.ml import results as results
from dala.ml import smooth as smooth
from dala.ml import track as track
from dala.ml.background import Background as Background
from dala.ml.follow.watch import Watcher as Watcher
from dala.ml.follow.watch import watch as watch
from dala.ml.hide import FaceHider as FaceHider
from dala.ml.landmarks.targets import Subject as Subject
from dala.ml.landmarks.targets import face as face
from dala.ml.landmarks.targets import hand as hand
from dala.ml.landmarks.targets import pose as pose
from dala.ml.model import Model as Model
from dala.ml.prepare import preprocess as preprocess
