// The palette: everything a chain can hold, found by typing.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { ask, catalogue, dialog, drawer, panel, selectedCard } from "../store";
import type { Json } from "../types";
import { Icon, type IconName } from "../ui/icons";
import { summary } from "../ui/words";
import { Dialog } from "../ui/parts";

interface Entry {
  kind: "filter" | "model" | "kernel" | "preset";
  name: string;
  title: string;
  category: string;
  doc: string;
  missing: string;
  words: string;
  /** The chain of a preset. */
  value?: Json;
}

const ICONS: { [kind: string]: IconName } = { filter: "sliders", model: "face", kernel: "code", preset: "spark" };

/** How well a text fits a query: 0 is best, Infinity not at all. */
export function rank(entry: { name: string; title: string; words: string }, query: string): number {
  const wanted = query.toLowerCase().trim();
  if (wanted === "") return 0;
  const [name, title] = [entry.name.toLowerCase(), entry.title.toLowerCase()];
  if (name === wanted || title === wanted) return 0;
  if (name.startsWith(wanted) || title.startsWith(wanted)) return 1;
  if (title.split(/[\s_]/).some((word) => word.startsWith(wanted))) return 2;
  if (name.includes(wanted) || title.includes(wanted)) return 3;
  const parts = wanted.split(/\s+/);
  if (parts.every((part) => entry.words.includes(part))) return 4;
  let at = 0;
  for (const letter of name) if (letter === wanted[at]) at++;
  return at === wanted.length ? 6 : Infinity;
}

function entries(): Entry[] {
  const all: Entry[] = [];
  const made = (kind: Entry["kind"], name: string, title: string, category: string, doc: string, missing = "", words = "") => {
    all.push({ kind, name, title, category, doc, missing, words: `${title} ${name} ${category} ${words} ${doc}`.toLowerCase() });
  };
  const known = catalogue.value;
  for (const each of known.filters) made("filter", each.name, each.title, each.category ?? "Filters", each.doc, "", each.words);
  for (const each of known.models) {
    made("model", each.name, each.title, each.category ?? "Models", each.doc, each.available === false ? (each.missing ?? "not available") : "");
  }
  made("kernel", "", "New kernel", "Kernels", "Write a kernel of your own; its parameters become sliders.");
  for (const each of known.kernels ?? []) {
    made("kernel", each.name, each.title, "Kernels", firstLine(each.text));
  }
  for (const each of known.presets ?? []) {
    made("preset", each.name, each.title, "Presets", `${each.doc} Replaces the chain.`);
    all[all.length - 1].value = each.value;
  }
  return all;
}

function firstLine(text: string): string {
  const match = /"""\s*([^"\n]+)/.exec(text);
  return match ? match[1].trim() : "A kernel to begin with.";
}

export function Palette(): JSX.Element {
  const query = useSignal("");
  const chosen = useSignal(0);
  const list = useRef<HTMLUListElement>(null);
  const all = useMemo(entries, [catalogue.value]);
  const found = useMemo(() => {
    const ranked = all.map((entry) => ({ entry, rank: rank(entry, query.value) })).filter((each) => each.rank < Infinity);
    if (query.value.trim()) ranked.sort((a, b) => a.rank - b.rank);
    else {
      const order = [...new Set(all.map((entry) => entry.category))];
      ranked.sort((a, b) => order.indexOf(a.entry.category) - order.indexOf(b.entry.category));
    }
    return ranked.map((each) => each.entry);
  }, [all, query.value]);
  const current = found[Math.min(chosen.value, found.length - 1)];

  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [chosen.value, query.value]);

  async function add(entry: Entry): Promise<void> {
    dialog.value = null;
    if (entry.value !== undefined) {
      if (await ask("preset", { value: entry.value })) panel.value = "chain";
      return;
    }
    const values: { [key: string]: unknown } = { kind: entry.kind };
    if (entry.name) values.name = entry.name;
    const reply = await ask("add", values);
    if (reply === null) return;
    panel.value = "chain";
    selectedCard.value = (reply.card as string) ?? null;
    if (entry.kind === "kernel") drawer.value = "kernel";
  }
  function onKeyDown(event: KeyboardEvent): void {
    const count = found.length;
    if (event.key === "ArrowDown") chosen.value = (chosen.value + 1) % Math.max(count, 1);
    else if (event.key === "ArrowUp") chosen.value = (chosen.value + count - 1) % Math.max(count, 1);
    else if (event.key === "PageDown") chosen.value = Math.min(chosen.value + 8, count - 1);
    else if (event.key === "PageUp") chosen.value = Math.max(chosen.value - 8, 0);
    else if (event.key === "Enter" && current) void add(current);
    else return;
    event.preventDefault();
  }
  let category = "";
  return (
    <Dialog title="Add to the chain" class="palette" bare onClose={() => (dialog.value = null)}>
      <div class="palette-search">
        <Icon name="search" />
        <input
          type="text"
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={current ? `entry-${current.kind}-${current.name}` : undefined}
          aria-label="Search filters, models, kernels and presets"
          placeholder="Search filters, models, kernels, presets"
          spellcheck={false}
          autocomplete="off"
          data-focus
          data-testid="palette-search"
          value={query.value}
          onInput={(event) => {
            query.value = event.currentTarget.value;
            chosen.value = 0;
          }}
          onKeyDown={onKeyDown}
        />
        <kbd>Esc</kbd>
      </div>
      <ul class="palette-list" id="palette-list" role="listbox" aria-label="Results" ref={list}>
        {found.map((entry, index) => {
          const head = !query.value.trim() && entry.category !== category ? entry.category : null;
          category = entry.category;
          return [
            head ? (
              <li key={`head ${head}`} class="palette-head" role="presentation">
                {head}
              </li>
            ) : null,
            <li
              key={`${entry.kind} ${entry.name}`}
              id={`entry-${entry.kind}-${entry.name}`}
              class={entry.missing ? "entry missing" : "entry"}
              role="option"
              aria-selected={entry === current}
              onPointerMove={() => (chosen.value = index)}
              onClick={() => void add(entry)}
            >
              <span class={`entry-icon ${entry.kind}`}>
                <Icon name={ICONS[entry.kind]} size={16} />
              </span>
              <span class="entry-text">
                <b>{entry.title}</b>
                <small>{entry.missing || summary(entry.doc)}</small>
              </span>
              {query.value.trim() ? <span class="entry-category">{entry.category}</span> : null}
            </li>,
          ];
        })}
        {found.length === 0 ? (
          <li class="palette-none" role="presentation">
            Nothing is called “{query.value}”.
          </li>
        ) : null}
      </ul>
    </Dialog>
  );
}
