// Where the selected node is on the picture, and moving it there.
import { effect, signal } from "@preact/signals";
import { change, connection, now, selectedNode, state } from "../store";

/** The corners of the selected node at the present time, in pixels of the scene. */
export const corners = signal<[number, number][] | null>(null);

let asked = false;
let again = false;

async function ask(): Promise<void> {
  if (asked) {
    again = true;
    return;
  }
  const id = selectedNode.peek();
  if (id === null) {
    corners.value = null;
    return;
  }
  asked = true;
  try {
    const reply = await connection.request("box", { node: id });
    const box = reply.box as [number, number, number, number] | null;
    const seen = selectedNode.peek() === id && box && box[2] > 0 && box[3] > 0;
    corners.value = seen ? (reply.corners as [number, number][]) : null;
  } catch {
    corners.value = null;
  }
  asked = false;
  if (again) {
    again = false;
    void ask();
  }
}

effect(() => {
  // Asked for again when the selection, the document or the time changes.
  const wanted = [selectedNode.value, state.value.version, Math.round(now.value * 30)];
  if (wanted[0] !== null || corners.peek()) void ask();
});

/** Move a node by a distance on the picture, counted from the start of the gesture. */
export function dragNode(id: string, dx: number, dy: number, gesture: number): void {
  const round = (value: number) => Math.round(value * 10) / 10;
  change(`node_drag ${id}`, "node_drag", { node: id, dx: round(dx), dy: round(dy), drag: gesture });
}
