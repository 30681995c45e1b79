// What changes only how the picture is looked at.
import type { JSX } from "preact";
import { ask, state, tab, timing } from "../store";
import { IconButton } from "../ui/parts";
import { placement, setSplit, split, toggleChart, wantedCharts, zoom, zoomBy, zoomTo } from "./geometry";

export function Toolbar(): JSX.Element {
  const current = tab.value;
  const percent = Math.round(placement.value.scale * (devicePixelRatio || 1) * 100);
  return (
    <div class="toolbar" role="toolbar" aria-label="View">
      <IconButton
        icon="split"
        label="Compare with the original"
        keys="B"
        pressed={split.value !== null}
        disabled={!current}
        testid="compare"
        onClick={() => setSplit(split.value === null ? 0.5 : null)}
      />
      <IconButton
        icon="chart"
        label="Histogram"
        keys="H"
        pressed={wantedCharts.value.includes("histogram")}
        disabled={!current}
        onClick={() => toggleChart("histogram")}
      />
      <IconButton
        icon="wave"
        label="Waveform"
        keys="W"
        pressed={wantedCharts.value.includes("waveform")}
        disabled={!current}
        onClick={() => toggleChart("waveform")}
      />
      <IconButton
        icon="pulse"
        label="Times of frames"
        keys="T"
        pressed={timing.value}
        onClick={() => (timing.value = !timing.value)}
      />
      <IconButton
        icon="record"
        label={state.value.tracing ? "End the trace" : "Trace: record why frames are late"}
        pressed={state.value.tracing}
        testid="trace"
        onClick={() => void ask("trace", { on: !state.value.tracing })}
      />
      <span class="divider" />
      <button type="button" class="icon-button" aria-label="Zoom out" title="Zoom out (-)" disabled={!current} onClick={() => zoomBy(1 / 1.5)}>
        −
      </button>
      <button
        type="button"
        class="zoom"
        aria-label={`Zoom: ${percent} percent. Press for 100 percent.`}
        title="100 % (1)"
        data-testid="zoom"
        disabled={!current}
        onClick={() => zoomTo(1 / (devicePixelRatio || 1))}
      >
        {current ? percent : "–"} %
      </button>
      <button type="button" class="icon-button" aria-label="Zoom in" title="Zoom in (+)" disabled={!current} onClick={() => zoomBy(1.5)}>
        +
      </button>
      <IconButton icon="fit" label="Fit" keys="0" pressed={zoom.value === null} disabled={!current} onClick={() => zoomTo(null)} />
      {current ? (
        <span class="dimensions">
          {current.width} × {current.height}
        </span>
      ) : null}
    </div>
  );
}
