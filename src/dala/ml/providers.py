"""What runs a model: ONNX Runtime's providers, tried in order, chosen openly."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dala.errors import DeviceUnavailable, MissingPackage, ModelError, did_you_mean

_log = logging.getLogger("dala")

#: Our names for providers, the best first, and ONNX Runtime's.
PROVIDERS: Final = {
    "cuda": "CUDAExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "directml": "DmlExecutionProvider",
    "webgpu": "WebGpuExecutionProvider",
    "cpu": "CPUExecutionProvider",
}

#: The package whose build has each.
PACKAGES: Final = {
    "cuda": "onnxruntime-gpu",
    "coreml": "onnxruntime (on macOS)",
    "directml": "onnxruntime-directml (on Windows)",
    "webgpu": "a build of onnxruntime with WebGPU",
    "cpu": "onnxruntime",
}


def runtime() -> Any:
    """The package ``onnxruntime``, whichever build is installed."""
    try:
        import onnxruntime
    except ImportError:
        raise MissingPackage(
            "load_model: models run on ONNX Runtime, which is not installed. "
            "Install it: pip install 'dala[ml]' (or onnxruntime-gpu, onnxruntime-directml)."
        ) from None
    return onnxruntime


def available() -> list[str]:
    """Providers that the installed build has, by our names, the best first."""
    found = set(runtime().get_available_providers())
    return [name for name, title in PROVIDERS.items() if title in found]


@dataclass
class ProviderChoice:
    """Which provider runs a model, and why."""

    name: str
    #: What became of each provider that was looked at, in words.
    tried: dict[str, str] = field(default_factory=dict)


def candidates(provider: str) -> list[str]:
    """The providers to try for what a user asked for; refuses what cannot be had."""
    names = {title.lower(): name for name, title in PROVIDERS.items()}
    asked = names.get(str(provider).lower(), provider)
    if asked == "auto":
        return available()
    if asked not in PROVIDERS:
        hint = did_you_mean(str(provider), ["auto", *PROVIDERS])
        listed = ", ".join(map(repr, ["auto", *PROVIDERS]))
        raise ModelError(
            f"load_model: provider is one of {listed}; {provider!r} came. {hint}".rstrip()
        )
    here = available()
    if asked not in here:
        raise DeviceUnavailable(
            f"load_model: provider {asked!r} is not in the installed ONNX Runtime, which has "
            f"{', '.join(here)}. Install {PACKAGES[asked]}, or use provider='auto'."
        )
    return [asked]


def open_session(model: bytes | str, provider: str, threads: int | None) -> Any:
    """A session on a provider (the CPU takes what it lacks); raises where it does not start."""
    ort = runtime()
    options = ort.SessionOptions()
    options.log_severity_level = 4  # what goes wrong comes as an exception
    if threads is not None:
        options.intra_op_num_threads = threads
    titles = list(dict.fromkeys((PROVIDERS[provider], PROVIDERS["cpu"])))
    session = ort.InferenceSession(model, options, providers=titles)
    if PROVIDERS[provider] not in session.get_providers():
        raise RuntimeError("ONNX Runtime left it out when the session was made")
    return session


def choose(
    model: bytes | str, names: Sequence[str], asked: str, threads: int | None, title: str
) -> tuple[Any, ProviderChoice]:
    """A session on the first provider that starts, and what became of the others."""
    tried: dict[str, str] = {}
    for name in names:
        try:
            session = open_session(model, name, threads)
        except Exception as error:
            if name == "cpu" or asked != "auto":
                raise _refused(title, name, error) from None
            tried[name] = f"did not start: {first_line(error)}"
            _log.warning("dala: %s is not run by %r, which %s", title, name, tried[name])
            continue
        tried[name] = "runs the model"
        return session, ProviderChoice(name, tried)
    raise DeviceUnavailable(f"load_model: no provider of ONNX Runtime can run {title}.")


def first_line(error: BaseException) -> str:
    """The words of ONNX Runtime that matter, on one line."""
    text = " ".join(str(error).split())
    text = text.removeprefix("[ONNXRuntimeError] :").strip()
    text = text.rpartition("Status Message: ")[2]  # where it happened comes before that
    return text[:300] + ("..." if len(text) > 300 else "")


def _refused(title: str, provider: str, error: BaseException) -> Exception:
    words = first_line(error)
    kind = type(error).__name__
    if kind in ("InvalidProtobuf", "InvalidGraph", "InvalidArgument", "Fail", "NotImplemented"):
        reasons = {
            "InvalidProtobuf": "is not an ONNX file, or a damaged one",
            "NotImplemented": "has an operator that the installed ONNX Runtime lacks",
        }
        reason = reasons.get(kind, "is refused by ONNX Runtime")
        if "not a registered function/op" in words or "No Op registered" in words:
            reason = reasons["NotImplemented"]
        return ModelError(f"load_model: {title} {reason}: {words}")
    return DeviceUnavailable(
        f"load_model: provider {provider!r} could not start with {title}: {words}"
    )
