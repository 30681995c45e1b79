"""ONNX Runtime's execution providers: which are available, and which one runs a model."""

from __future__ import annotations

import logging
import os
import re
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import dala
from dala import budget, forks
from dala.errors import DeviceUnavailable, MissingPackage, ModelError, did_you_mean
from dala.extras import pip_install
from dala.gpu.compute import buffer_zeros
from dala.ml.runtime.onnx_graph import ModelSource, OnnxGraph
from dala.ml.runtime.packing import pack_outputs
from dala.untrusted.opened import Opened, readable

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

_log = logging.getLogger("dala")

#: Our names of providers, best first, and those of ONNX Runtime.
PROVIDERS: Final = {
    "cuda": "CUDAExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "directml": "DmlExecutionProvider",
    "webgpu": "WebGpuExecutionProvider",
    "cpu": "CPUExecutionProvider",
}

#: The package that has each provider.
PACKAGES: Final = {
    "cuda": "onnxruntime-gpu",
    "coreml": "onnxruntime (on macOS)",
    "directml": "onnxruntime-directml (on Windows)",
    "webgpu": "onnxruntime-ep-webgpu, which needs a GPU",
    "cpu": "onnxruntime",
}
#: The name under which the WebGPU plugin is registered.
_PLUGIN: Final = "dala-webgpu"
#: A device of a plugin; ONNX Runtime has no types.
EpDevice: TypeAlias = Any

_lock = forks.lock()
#: The devices of the WebGPU plugin and why there are none, once it was registered.
_plugin: tuple[list[EpDevice], str] | None = None
#: Choices that were reported.
_reported: set[str] = set()


def runtime() -> ModuleType:
    """Return the package ``onnxruntime``, from any of its builds."""
    try:
        import onnxruntime
    except ImportError:
        raise MissingPackage(
            f"load_model: ONNX Runtime is not installed. Run: {pip_install('ml')} "
            "(or install onnxruntime-gpu or onnxruntime-directml)."
        ) from None
    found: ModuleType = onnxruntime
    return found


def plugin() -> tuple[list[EpDevice], str]:
    """Register the WebGPU plugin once; return its devices, and why there are none."""
    global _plugin
    with _lock:
        if _plugin is None:
            _plugin = _register()
        return _plugin


def _register() -> tuple[list[EpDevice], str]:
    ort = runtime()
    try:
        import onnxruntime_ep_webgpu as package
    except ImportError:
        return [], f"onnxruntime-ep-webgpu is not installed ({pip_install('ml')})"
    if not hasattr(ort, "register_execution_provider_library"):
        return [], f"ONNX Runtime {ort.__version__} takes no plugins; 1.31 or newer does"
    try:
        ort.register_execution_provider_library(_PLUGIN, package.get_library_path())
        found = [d for d in ort.get_ep_devices() if d.ep_name == PROVIDERS["webgpu"]]
    except Exception as error:
        return [], f"onnxruntime-ep-webgpu did not start: {first_line(error)}"
    # Real GPUs first; the processor is listed where software adapters are allowed.
    found.sort(key=lambda d: str(d.device.type).rpartition(".")[2] != "GPU")
    return found, "" if found else "onnxruntime-ep-webgpu finds no GPU"


def available() -> list[str]:
    """Return the names of the available providers, best first."""
    found = set(runtime().get_available_providers())
    if plugin()[0]:
        found.add(PROVIDERS["webgpu"])
    return [name for name, title in PROVIDERS.items() if title in found]


@dataclass
class ProviderChoice:
    """The provider that runs a model."""

    name: str
    #: What happened with each provider that was tried.
    tried: dict[str, str] = field(default_factory=dict)
    #: Why it was taken.
    reason: str = ""


class OpenedSession(NamedTuple):
    """A session, and how it runs."""

    session: InferenceSession
    #: Whether it allows captured runs ("yes", or "no" and why); "" on other providers.
    capture: str = ""
    #: Whether its outputs are joined into one.
    packed: bool = False


class Candidates(NamedTuple):
    """Providers to try, in order, and why these."""

    names: list[str]
    reason: str


def candidates(provider: str) -> Candidates:
    """Return the providers to try; raise if the requested one is unknown or unavailable.

    "auto" follows the current device: on a GPU all that are available, else the CPU.
    """
    names = {title.lower(): name for name, title in PROVIDERS.items()}
    asked = names.get(provider.lower(), provider) if isinstance(provider, str) else ""
    if asked == "auto":
        return _for_device()
    if asked not in PROVIDERS:
        known = ["auto", *PROVIDERS]
        expected = f"one of {', '.join(map(repr, known))}"
        advice = did_you_mean(str(provider), known)
        raise ModelError.invalid("load_model", "provider", expected, provider, advice)
    if asked == "cpu":
        runtime()
        return Candidates(["cpu"], "it was asked for")
    here = available()
    if asked not in here:
        why = f" ({plugin()[1]})" if asked == "webgpu" and plugin()[1] else ""
        raise DeviceUnavailable(
            f"load_model: the installed ONNX Runtime has no provider {asked!r}{why}, only "
            f"{', '.join(here)}. Install {PACKAGES[asked]}, or use provider='auto'."
        )
    return Candidates([asked], "it was asked for")


def _for_device() -> Candidates:
    runtime()
    with buffer_zeros(1, "u8") as probe:
        return following(probe.device)


def following(device: str) -> Candidates:
    """Return the providers that "auto" tries where a device is the current one."""
    if device.startswith("cuda"):
        found = available()  # WebGPU too, where there is Vulkan
        missing = "" if "cuda" in found else f", and {PACKAGES['cuda']} is not installed"
        return Candidates(found, f"the device is {device}{missing}")
    if not device.startswith("webgpu"):
        return Candidates(["cpu"], f"the device is {device}")
    facts = next((d for d in dala.devices() if d.id == device), None)
    if facts is None or not facts.gpu:
        name = facts.name if facts is not None else device
        return Candidates(["cpu"], f"the device {device} ({name}) is a software adapter")
    found = available()
    if found == ["cpu"]:
        return Candidates(found, f"the device is {device} ({facts.name}), but {plugin()[1]}")
    return Candidates(found, f"the device is {device} ({facts.name})")


def open_session(
    source: ModelSource, provider: str, threads: int | None, capture: bool = False
) -> InferenceSession:
    """Open a session on a provider, with the CPU for unsupported operators.

    Args:
        source: the model.
        provider: one of PROVIDERS.
        threads: of the CPU provider.
        capture: whether runs on WebGPU may be captured; raises where the model does not allow it.
    """
    ort = runtime()
    options = ort.SessionOptions()
    options.log_severity_level = 4  # failures are raised as exceptions
    # Threads that wait would spin, and take the cores of decoders, filters and encoders.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if threads is not None:
        options.intra_op_num_threads = threads
    extra = {"enableGraphCapture": "1"} if capture else {}
    if provider == "cuda" and (place := cuda_place()) is not None:
        extra = {"device_id": str(place.ordinal), "user_compute_stream": str(place.stream)}
    # A pattern is one more block for all tensors of a run: 200 MB for u2netp. It saves no time on a
    # CPU. Captured graphs need fixed memory.
    options.enable_mem_pattern = not capture and provider != "cpu"
    if isinstance(source.model, Opened):  # it opens no other file then
        files = {"": b""} | {name: file.mapped() for name, file in source.weights.items()}
        sizes = list(map(len, files.values()))
        options.add_external_initializers_from_files_in_memory(
            list(files), list(files.values()), sizes
        )
    model = source.model if isinstance(source.model, bytes) else os.fspath(source.model)
    title = PROVIDERS[provider]
    devices = plugin()[0] if provider == "webgpu" and title == "WebGpuExecutionProvider" else []
    with budget.ending(lambda: options.set_load_cancellation_flag(True)):
        if devices:
            options.add_provider_for_devices(devices[:1], extra)
            session = ort.InferenceSession(model, options)
        else:
            titles = list(dict.fromkeys((title, PROVIDERS["cpu"])))
            session = ort.InferenceSession(
                model, options, providers=titles, provider_options=[extra, {}][: len(titles)]
            )
    if title not in session.get_providers():
        raise RuntimeError("ONNX Runtime did not use it for the session")
    return session


class CudaPlace(NamedTuple):
    """A CUDA device of ours: the GPU's number, and the stream of all work."""

    device: str
    ordinal: int
    stream: int


def cuda_place() -> CudaPlace | None:
    """Return the current device if it is one of CUDA, where a model shares memory and stream."""
    with buffer_zeros(1, "u8") as probe:
        if not probe.device.startswith("cuda"):
            return None
        stream = probe.__cuda_array_interface__["stream"]
        return CudaPlace(probe.device, probe.__dlpack_device__()[1], stream)


def open_best(
    source: ModelSource, provider: str, threads: int | None, graph: OnnxGraph | None = None
) -> OpenedSession:
    """Open a session, on WebGPU one whose runs are captured if the model allows it.

    Args:
        source: the model.
        provider: one of PROVIDERS.
        threads: of the CPU provider.
        graph: the structure of the model, if its outputs may be joined.
    """
    if provider != "webgpu":
        return OpenedSession(open_session(source, provider, threads))
    packed = None if graph is None else pack_outputs(graph, source.model)
    if packed is not None:
        try:
            session = open_session(ModelSource(packed), provider, threads, capture=True)
            return OpenedSession(session, "yes", packed=True)
        except Exception as error:
            _log.debug("dala: a model with joined outputs did not open: %s", first_line(error))
    try:
        return OpenedSession(open_session(source, provider, threads, capture=True), "yes")
    except Exception as error:
        refused = first_line(error)
    return OpenedSession(open_session(source, provider, threads), f"no: {refused}")


def choose(
    source: ModelSource,
    wanted: Candidates,
    asked: str,
    threads: int | None,
    title: str,
    graph: OnnxGraph | None = None,
) -> tuple[OpenedSession, ProviderChoice]:
    """Open a session on the first provider that starts."""
    tried: dict[str, str] = {}
    for name in wanted.names:
        try:
            opened = open_best(source, name, threads, graph)
        except Exception as error:
            budget.check_deadline("load_model")
            if name == "cpu" or asked != "auto":
                raise _refused(title, name, error) from None
            tried[name] = f"did not start: {first_line(error)}"
            _log.warning("dala: provider %r for %s %s", name, title, tried[name])
            continue
        tried[name] = "runs the model"
        report(name, wanted.reason, asked)
        return opened, ProviderChoice(name, tried, wanted.reason)
    raise DeviceUnavailable(f"load_model: ONNX Runtime has no provider for {title}.")


def report(name: str, reason: str, asked: str) -> None:
    """Log once which provider "auto" takes, and why; a warning where it is not the device's."""
    text = f"models run on provider {name!r}: {reason}"
    if asked == "auto" and text not in _reported:
        _reported.add(text)
        expected = name == "cpu" and reason in ("the device is cpu", "the device is reference")
        _log.log(logging.INFO if expected else logging.WARNING, "dala: %s", text)


def first_line(error: BaseException) -> str:
    """Return the essential part of an ONNX Runtime message, on one line."""
    text = " ".join(readable(str(error)).split())
    text = re.sub(r"^\[ONNXRuntimeError\] : (\d+ : \w+ : )?", "", text)
    text = text.rpartition("Status Message: ")[2]  # drops the location
    return text[:300] + ("..." if len(text) > 300 else "")


def _refused(title: str, provider: str, error: BaseException) -> Exception:
    message = first_line(error)
    kind = type(error).__name__
    if kind in ("InvalidProtobuf", "InvalidGraph", "InvalidArgument", "Fail", "NotImplemented"):
        reasons = {
            "InvalidProtobuf": "is not an ONNX file, or is damaged",
            "NotImplemented": "has an operator that the installed ONNX Runtime does not support",
        }
        reason = reasons.get(kind, "was rejected by ONNX Runtime")
        if "not a registered function/op" in message or "No Op registered" in message:
            reason = reasons["NotImplemented"]
        return ModelError(f"load_model: {title} {reason}: {message}")
    return DeviceUnavailable(
        f"load_model: provider {provider!r} could not start with {title}: {message}"
    )
