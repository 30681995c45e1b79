// The scene: its tree of nodes, and the properties of the selected one.
import { signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { Control } from "../controls/control";
import {
  ask, catalogue, currentGesture, drawer, node, nodes, now, selectedNode, setProperty, state,
} from "../store";
import type { Json, NodeType, Param, SceneNode } from "../types";
import { Icon, type IconName } from "../ui/icons";
import { IconButton, MenuButton } from "../ui/parts";

const ICONS: { [type: string]: IconName } = {
  video: "film", image: "image", text: "text", subtitles: "text", effect: "sliders", group: "layers",
  scene: "layers", timeline: "film", overlay: "square", audio: "wave",
};

export function typeOf(of: SceneNode): NodeType | undefined {
  return catalogue.value.nodes.find((each) => each.type === of.type);
}

export function nameOf(of: SceneNode): string {
  const text = of.properties.text;
  if (of.name) return of.name;
  if (typeof text === "string" && text) return text.split("\n")[0].slice(0, 28);
  const source = of.properties.source;
  if (typeof source === "string" && source) return source.split("/").pop()!;
  return typeOf(of)?.title ?? of.type;
}

interface Row {
  node: SceneNode;
  parent: SceneNode | null;
  depth: number;
  index: number;
  count: number;
}

const closed = signal<Set<string>>(new Set());

/** The visible rows of the tree, front to back as layers are listed. */
function rows(): Row[] {
  const all: Row[] = [];
  function walk(list: SceneNode[], parent: SceneNode | null, depth: number): void {
    for (let index = list.length - 1; index >= 0; index--) {
      all.push({ node: list[index], parent, depth, index, count: list.length });
      if (list[index].children?.length && !closed.value.has(list[index].id)) {
        walk(list[index].children, list[index], depth + 1);
      }
    }
  }
  walk(state.value.scene?.nodes ?? [], null, 0);
  return all;
}

export function ScenePanel(): JSX.Element {
  return (
    <section class="scene" aria-label="Scene">
      <header class="panel-head">
        <h2>Scene</h2>
        <span class="grow" />
        <IconButton
          icon="diamond"
          label="Key frames"
          pressed={drawer.value === "tracks"}
          onClick={() => (drawer.value = drawer.value === "tracks" ? null : "tracks")}
        />
        <AddNode />
      </header>
      <Tree />
      {node.value ? <Properties key={node.value.id} owner={node.value} /> : <p class="quiet center">Select a node here or on the picture.</p>}
    </section>
  );
}

function AddNode(): JSX.Element {
  const holder = node.value && typeOf(node.value)?.holds ? node.value.id : null;
  const center = { position: "center" } as { [name: string]: Json };
  const first: { [type: string]: { [name: string]: Json } } = {
    text: { text: "Text", size: 48, ...center },
    overlay: { color: "#ff7a4d", shape: "rect", size: [160, 90], ...center },
    group: {},
  };
  async function add(type: string): Promise<void> {
    const reply = await ask("node_add", { type, properties: first[type] ?? {}, ...(holder ? { parent: holder } : {}) });
    if (reply) selectedNode.value = (reply.node as string) ?? null;
  }
  return (
    <MenuButton
      label="Add a node"
      text="Add"
      icon="plus"
      class="primary small"
      items={catalogue.value.nodes.map((each) => ({
        label: each.title,
        icon: ICONS[each.type] ?? "square",
        run: () => void add(each.type),
      }))}
    />
  );
}

function Tree(): JSX.Element {
  const list = useRef<HTMLUListElement>(null);
  const shown = rows();
  function focus(index: number): void {
    const row = shown[Math.min(Math.max(index, 0), shown.length - 1)];
    if (!row) return;
    selectedNode.value = row.node.id;
    requestAnimationFrame(() => list.current?.querySelector<HTMLElement>("[aria-selected=true]")?.focus());
  }
  function fold(id: string, shut: boolean): void {
    const next = new Set(closed.value);
    if (shut) next.add(id);
    else next.delete(id);
    closed.value = next;
  }
  function onKeyDown(event: KeyboardEvent): void {
    const at = shown.findIndex((row) => row.node.id === selectedNode.value);
    const row = shown[at];
    if (event.altKey && row && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      const to = row.index + (event.key === "ArrowUp" ? 1 : -1); // the list shows the front first
      if (to >= 0 && to < row.count) {
        void ask("node_move", { node: row.node.id, parent: row.parent?.id ?? null, to });
      }
    } else if (event.key === "ArrowDown") focus(at + 1);
    else if (event.key === "ArrowUp") focus(at - 1);
    else if (event.key === "Home") focus(0);
    else if (event.key === "End") focus(shown.length - 1);
    else if (event.key === "ArrowLeft" && row) {
      if (row.node.children?.length && !closed.value.has(row.node.id)) fold(row.node.id, true);
      else if (row.parent) selectedNode.value = row.parent.id;
    } else if (event.key === "ArrowRight" && row) fold(row.node.id, false);
    else if ((event.key === "Delete" || event.key === "Backspace") && row) void ask("node_remove", { node: row.node.id });
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
  return (
    <ul class="tree" role="tree" aria-label="Nodes, front to back" ref={list} onKeyDown={onKeyDown}>
      {shown.map(({ node: each, depth, index, count, parent }) => {
        const chosen = each.id === selectedNode.value;
        const hidden = each.properties.visible === false;
        const folded = closed.value.has(each.id);
        return (
          <li
            key={each.id}
            class={`tree-row${chosen ? " chosen" : ""}${hidden ? " hidden-node" : ""}`}
            role="treeitem"
            aria-level={depth + 1}
            aria-selected={chosen}
            aria-expanded={each.children?.length ? !folded : undefined}
            tabIndex={chosen || (selectedNode.value === null && each === shown[0].node) ? 0 : -1}
            style={{ paddingLeft: `${8 + depth * 18}px` }}
            data-testid={`node-${nameOf(each)}`}
            onClick={() => (selectedNode.value = each.id)}
            onFocus={(event) => event.target === event.currentTarget && (selectedNode.value = each.id)}
          >
            {each.children?.length ? (
              <button type="button" class={`twist${folded ? " shut" : ""}`} tabIndex={-1} aria-label={folded ? "Open" : "Close"}
                onClick={(event) => { event.stopPropagation(); fold(each.id, !folded); }}>
                <Icon name="chevron" size={14} />
              </button>
            ) : <span class="twist" />}
            <Icon name={ICONS[each.type] ?? "square"} size={16} />
            <span class="tree-name">{nameOf(each)}</span>
            {each.animations?.length ? <span class="tree-keys" title="Animated"><Icon name="diamond" size={11} /></span> : null}
            <span class="tree-tools">
              <IconButton icon={hidden ? "off" : "eye"} size={15} label={hidden ? `Show ${nameOf(each)}` : `Hide ${nameOf(each)}`}
                onClick={(event) => { event.stopPropagation(); setProperty(each, "visible", hidden); }} />
              <MenuButton label={`More for ${nameOf(each)}`} icon="more" items={[
                { label: "Bring forward", icon: "chevron", hint: "Alt ↑", disabled: index === count - 1,
                  run: () => void ask("node_move", { node: each.id, parent: parent?.id ?? null, to: index + 1 }) },
                { label: "Send backward", icon: "chevron", hint: "Alt ↓", disabled: index === 0,
                  run: () => void ask("node_move", { node: each.id, parent: parent?.id ?? null, to: index - 1 }) },
                null,
                { label: "Remove", icon: "trash", danger: true, run: () => void ask("node_remove", { node: each.id }) },
              ]} />
            </span>
          </li>
        );
      })}
      {shown.length === 0 ? <li class="quiet center" role="presentation">The scene is empty.</li> : null}
    </ul>
  );
}

/** Groups of properties, and what belongs into each where a type has it; the rest is "More". */
const GROUPS: [string, string[]][] = [
  ["Content", ["text", "source", "color", "shape", "filter", "params", "input", "font", "weight", "align"]],
  ["Place", ["position", "size", "scale", "rotation", "anchor", "margin", "z_index", "fit", "crop"]],
  ["Look", ["opacity", "visible", "blend", "radius", "corner_radius", "border_width", "border_color", "shadow", "background"]],
  ["Sound", ["volume", "pan", "fade_in", "fade_out", "curve"]],
  ["Time", ["start", "end", "duration", "trim", "speed", "loop", "freeze"]],
];

function grouped(of: SceneNode, params: Param[]): [string, Param[]][] {
  const rest = new Map(params.map((each) => [each.name, each]));
  const made: [string, Param[]][] = [];
  for (const [title, names] of GROUPS) {
    const own = names.filter((name) => rest.has(name)).map((name) => rest.get(name)!);
    // The size of a text is that of its letters.
    if (title === "Content" && rest.get("size")?.type === "number") own.splice(1, 0, rest.get("size")!);
    own.forEach((each) => rest.delete(each.name));
    if (own.length) made.push([title, own]);
  }
  // Places that are set one by one, or animated, are shown with the others.
  const place = made.find(([title]) => title === "Place");
  for (const name of ["x", "y", "width", "height"]) {
    const used = of.properties[name] !== undefined || of.animations?.some((each) => each.property === name);
    if (place && used && rest.has(name)) {
      place[1].push(rest.get(name)!);
      rest.delete(name);
    }
  }
  if (rest.size) made.push(["More", [...rest.values()]]);
  return made;
}

function Properties({ owner }: { owner: SceneNode }): JSX.Element {
  const about = typeOf(owner);
  const open = useSignal(new Set(["Content", "Place", "Look"]));
  if (!about) return <p class="quiet center">A node of type {owner.type}.</p>;
  return (
    <div class="properties" aria-label={`Properties of ${nameOf(owner)}`} role="group">
      {grouped(owner, about.params).map(([title, params]) => (
        <details
          key={title}
          class="property-group"
          open={open.value.has(title)}
          onToggle={(event) => {
            const next = new Set(open.value);
            if (event.currentTarget.open) next.add(title);
            else next.delete(title);
            open.value = next;
          }}
        >
          <summary>{title}</summary>
          {open.value.has(title)
            ? params.map((param) => (
                <Control
                  key={param.name}
                  param={param}
                  textual
                  value={owner.properties[param.name]}
                  set={(value) => setProperty(owner, param.name, value)}
                  reset={() => setProperty(owner, param.name, param.default ?? null)}
                  extra={param.animatable ? <KeyButton owner={owner} param={param} /> : null}
                />
              ))
            : null}
        </details>
      ))}
    </div>
  );
}

/** Set or remove a key frame of a property at the present time. */
function KeyButton({ owner, param }: { owner: SceneNode; param: Param }): JSX.Element {
  const track = owner.animations?.find((each) => each.property === param.name);
  const here = track?.keyframes.find((key) => Math.abs(key[0] - now.value) < 0.02);
  const label = here ? `Remove the key frame of ${param.name}` : `Add a key frame of ${param.name}`;
  return (
    <IconButton
      icon="diamond"
      size={13}
      class={`tiny key ${here ? "here" : track ? "animated" : ""}`}
      label={label}
      onClick={() => {
        const place = { node: owner.id, property: param.name, drag: currentGesture() };
        if (here) void ask("key_remove", { ...place, time: here[0] });
        else {
          const value = owner.properties[param.name] ?? param.default ?? 0;
          void ask("key_set", { ...place, time: Math.round(now.value * 1000) / 1000, value });
          drawer.value = "tracks";
        }
      }}
    />
  );
}

/** Nodes with animations, for the tracks. */
export function animated(): SceneNode[] {
  return nodes.value.filter((each) => each.animations?.length);
}
