"""The names of ``dala.media.scene``, each with the module that defines it."""

from dala.media.scene.file.load import load_scene as load_scene
from dala.media.scene.file.load import scene_to_dict as scene_to_dict
from dala.media.scene.functions import add_image as add_image
from dala.media.scene.functions import add_video as add_video
from dala.media.scene.functions import new as new
from dala.media.scene.functions import render as render
from dala.media.scene.functions import set_pip_transform as set_pip_transform
from dala.media.scene.scene import Scene as Scene
from dala.media.scene.timeline import Timeline as Timeline
