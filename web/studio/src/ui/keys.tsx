// Keys that work everywhere on the page, and the dialog that lists them.
import type { JSX } from "preact";
import { setSplit, split, toggleChart, zoomBy, zoomTo } from "../picture/geometry";
import { duration, loopEdge, seek, step, toggleLoop, togglePlay } from "../picture/timeline";
import { ask, dialog, state, tab, timing } from "../store";
import { saveScene } from "../home/home";
import { Dialog } from "./parts";

const LIST: [string, string][] = [
  ["Ctrl K", "Add a card"],
  ["Ctrl O", "Open"],
  ["Ctrl Z, Ctrl Shift Z", "Undo, redo"],
  ["Ctrl S", "Save the scene"],
  ["Space", "Play or pause"],
  [", and .", "One frame back or forward"],
  ["I and O", "Begin or end the loop here"],
  ["L", "Loop on or off"],
  ["B", "Compare with the original"],
  ["H and W", "Histogram, waveform"],
  ["T", "Times of frames, and what they waited for"],
  ["+ and -", "Zoom in or out"],
  ["0 and 1", "Fit, 100 %"],
  ["?", "This list"],
];

/** Whether a key belongs to a field that takes text, or to a control that uses it. */
function typing(event: KeyboardEvent): boolean {
  const target = event.composedPath()[0] as HTMLElement;
  if (target.closest?.("[contenteditable=true], textarea, select, .cm-editor")) return true;
  if (target instanceof HTMLInputElement) return !["range", "checkbox", "color", "button"].includes(target.type);
  return false;
}

export function onKey(event: KeyboardEvent): void {
  const command = event.ctrlKey || event.metaKey;
  const text = typing(event);
  if (command && !event.altKey) {
    const key = event.key.toLowerCase();
    if (key === "k" && state.value.active) dialog.value = "palette";
    else if (key === "o") dialog.value = "open";
    else if (key === "s") {
      if (state.value.scene) void saveScene();
    } else if (key === "z" && !text) void ask(event.shiftKey ? "redo" : "undo");
    else if (key === "y" && !text) void ask("redo");
    else return;
    event.preventDefault();
    return;
  }
  if (event.altKey || text || dialog.value !== null) return;
  const button = (event.target as HTMLElement).closest?.("button, a, summary, [role=switch]");
  const timed = tab.value !== null && !tab.value.live && duration() > 0;
  switch (event.key) {
    case " ":
      if (button || !timed) return;
      togglePlay();
      break;
    case ",": if (timed) step(-1); break;
    case ".": if (timed) step(1); break;
    case "i": if (timed) loopEdge(0); break;
    case "o": if (timed) loopEdge(1); break;
    case "l": if (timed) toggleLoop(); break;
    case "Home": if (timed) seek(0); break;
    case "b": if (tab.value) setSplit(split.value === null ? 0.5 : null); break;
    case "h": toggleChart("histogram"); break;
    case "w": toggleChart("waveform"); break;
    case "t": timing.value = !timing.value; break;
    case "+": case "=": zoomBy(1.5); break;
    case "-": zoomBy(1 / 1.5); break;
    case "0": zoomTo(null); break;
    case "1": zoomTo(1 / (devicePixelRatio || 1)); break;
    case "?": dialog.value = "keys"; break;
    default: return;
  }
  event.preventDefault();
}

export function KeysDialog(): JSX.Element {
  return (
    <Dialog title="Keys" class="keys" onClose={() => (dialog.value = null)}>
      <dl>
        {LIST.map(([keys, what]) => (
          <div key={keys}>
            <dt>{keys.split(/(, | and )/).map((part, index) => (/^(, | and )$/.test(part) ? part : part.split(" ").map((key) => <kbd key={`${index} ${key}`}>{key}</kbd>)))}</dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
