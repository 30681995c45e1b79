"""ONNX Runtime's execution providers: which are available, and which one runs a model."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Final

from dala.errors import DeviceUnavailable, MissingPackage, ModelError, did_you_mean
from dala.extras import pip_install

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
    "webgpu": "a build of onnxruntime with WebGPU",
    "cpu": "onnxruntime",
}


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


def available() -> list[str]:
    """Return the names of the available providers, best first."""
    found = set(runtime().get_available_providers())
    return [name for name, title in PROVIDERS.items() if title in found]


@dataclass
class ProviderChoice:
    """The provider that runs a model."""

    name: str
    #: What happened with each provider that was tried.
    tried: dict[str, str] = field(default_factory=dict)


def candidates(provider: str) -> list[str]:
    """Return the providers to try; raise if the requested one is unknown or unavailable."""
    names = {title.lower(): name for name, title in PROVIDERS.items()}
    asked = names.get(str(provider).lower(), provider)
    if asked == "auto":
        return available()
    if asked not in PROVIDERS:
        known = ["auto", *PROVIDERS]
        raise ModelError.invalid(
            "load_model",
            "provider",
            f"one of {', '.join(map(repr, known))}",
            provider,
            did_you_mean(str(provider), known),
        )
    here = available()
    if asked not in here:
        raise DeviceUnavailable(
            f"load_model: the installed ONNX Runtime has no provider {asked!r}, only "
            f"{', '.join(here)}. Install {PACKAGES[asked]}, or use provider='auto'."
        )
    return [asked]


def open_session(model: bytes | str, provider: str, threads: int | None) -> InferenceSession:
    """Open a session on a provider, with the CPU for unsupported operators."""
    ort = runtime()
    options = ort.SessionOptions()
    options.log_severity_level = 4  # failures are raised as exceptions
    if threads is not None:
        options.intra_op_num_threads = threads
    titles = list(dict.fromkeys((PROVIDERS[provider], PROVIDERS["cpu"])))
    session = ort.InferenceSession(model, options, providers=titles)
    if PROVIDERS[provider] not in session.get_providers():
        raise RuntimeError("ONNX Runtime did not use it for the session")
    return session


def choose(
    model: bytes | str, names: Sequence[str], asked: str, threads: int | None, title: str
) -> tuple[InferenceSession, ProviderChoice]:
    """Open a session on the first provider that starts."""
    tried: dict[str, str] = {}
    for name in names:
        try:
            session = open_session(model, name, threads)
        except Exception as error:
            if name == "cpu" or asked != "auto":
                raise _refused(title, name, error) from None
            tried[name] = f"did not start: {first_line(error)}"
            _log.warning("dala: provider %r for %s %s", name, title, tried[name])
            continue
        tried[name] = "runs the model"
        return session, ProviderChoice(name, tried)
    raise DeviceUnavailable(f"load_model: ONNX Runtime has no provider for {title}.")


def first_line(error: BaseException) -> str:
    """Return the essential part of an ONNX Runtime message, on one line."""
    text = " ".join(str(error).split())
    text = text.removeprefix("[ONNXRuntimeError] :").strip()
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
