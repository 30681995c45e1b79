"""Format the plan of a pipeline: stages, passes, bytes and times."""

from __future__ import annotations

from collections.abc import Sequence

from dala.errors import counted
from dala.gpu.compute.engines.base import Engine
from dala.gpu.compute.pipeline.chain import Chain
from dala.gpu.compute.pipeline.fuse import Pass, Stage


def explain(
    engine: Engine | None, stages: Sequence[Stage], passes: Sequence[Pass], times: Sequence[float]
) -> str:
    """Return the plan of a pipeline as text; ``times`` are seconds per pass, if known."""
    where = engine.id if engine is not None else "no device yet"
    count = counted(sum(item.op != "barrier" for item in passes), "passes", "pass")
    lines = [f"pipeline on {where}: {counted(len(stages), 'stages')} in {count}"]
    for number, stage in enumerate(stages):
        shape = stage.output.shape if stage.output is not None else ""
        lines.append(f"  stage {number}: {stage.name} {shape}{_fusion(stage, passes)}")
    for number, item in enumerate(passes):
        time = f", {times[number] * 1e3:.3f} ms" if times else ""
        lines.append(f"  pass {number}: {item.label}, {item.moved:,} bytes{time}")
    return "\n".join(lines)


def _fusion(stage: Stage, passes: Sequence[Pass]) -> str:
    """Return a note on how a stage was fused; an empty string if it was not."""
    for item in passes:
        members = item.nodes if isinstance(item, Chain) else [item]
        if any(stage in member.stages[:-1] for member in members):
            return ", fused"
        if len(members) > 1 and any(stage in member.stages for member in members):
            assert item.output is not None
            return f", in {item.output.engine.chain_method}"
    return ""
