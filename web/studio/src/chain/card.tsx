// One card of the chain: its switch, its cost and its controls.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Control } from "../controls/control";
import {
  ask, declarations, documentation, drawer, selectedCard, setParam, stats,
} from "../store";
import type { Card, Findings, Param } from "../types";
import { Icon } from "../ui/icons";
import { IconButton, MenuButton, Switch } from "../ui/parts";
import { summary } from "../ui/words";
import type { Lifted } from "./chain";

/** Parameters that few people touch; they are shown on request. */
const RARE = new Set(["border", "fill", "antialias", "method", "domain_min", "domain_max", "shaper", "shaper_min", "shaper_max", "seed"]);

interface Props {
  card: Card;
  index: number;
  count: number;
  lifted: Lifted | null;
  onLift: (event: PointerEvent) => void;
  onMove: (to: number) => void;
}

const folded = new Set<string>();

export function CardView({ card, index, count, lifted, onLift, onMove }: Props): JSX.Element {
  const open = useSignal(!folded.has(card.id));
  const all = useSignal(false);
  const chosen = selectedCard.value === card.id;
  const params = declarations(card);
  const usual = params.filter((each) => !RARE.has(each.name) || card.params[each.name] !== undefined);
  const rare = params.filter((each) => !usual.includes(each));
  const cost = stats.value.cards[card.id];
  const most = Math.max(...Object.values(stats.value.cards), 0.001);
  const result = stats.value.results?.[card.id];

  let shift = 0;
  if (lifted) {
    if (lifted.id === card.id) shift = lifted.by;
    else if (index > lifted.from && index <= lifted.to) shift = -lifted.height;
    else if (index < lifted.from && index >= lifted.to) shift = lifted.height;
  }
  const classes = ["card"];
  if (!card.on) classes.push("off");
  if (chosen) classes.push("chosen");
  if (card.error) classes.push("failed");
  if (lifted?.id === card.id) classes.push("lifted");

  function unfold(): void {
    open.value = !open.value;
    if (open.value) folded.delete(card.id);
    else folded.add(card.id);
  }
  function onHandleKey(event: KeyboardEvent): void {
    if (event.key === "ArrowUp") onMove(index - 1);
    else if (event.key === "ArrowDown") onMove(index + 1);
    else if (event.key === "Home") onMove(0);
    else if (event.key === "End") onMove(count - 1);
    else if (event.key === "Delete") void ask("remove", { card: card.id });
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
  async function duplicate(): Promise<void> {
    const reply = await ask("add", {
      kind: card.kind,
      ...(card.kind === "kernel" ? { text: card.text } : { name: card.name }),
      params: card.params,
      at: index + 1,
    });
    if (reply) selectedCard.value = (reply.card as string) ?? null;
  }
  const control = (param: Param) => (
    <Control
      key={param.name}
      param={param}
      value={card.params[param.name]}
      set={(value) => setParam(card, param.name, value)}
      reset={() => void ask("reset", { card: card.id, param: param.name })}
    />
  );
  const about = documentation(card);
  const root = useRef<HTMLLIElement>(null);
  useEffect(() => {
    // A card that was just added.
    if (chosen) root.current?.scrollIntoView({ block: "nearest", behavior: "smooth" });
  }, []);
  return (
    <li
      ref={root}
      class={classes.join(" ")}
      data-testid={`card-${card.name || card.kind}`}
      data-card={card.id}
      style={shift ? { transform: `translateY(${shift}px)` } : { transform: "" }}
      onPointerDown={() => (selectedCard.value = card.id)}
      onFocusIn={() => (selectedCard.value = card.id)}
    >
      <header class="card-head">
        <button
          type="button"
          class="grip"
          aria-label={`Move ${card.title}: ${index + 1} of ${count}. Arrow keys change its place.`}
          title="Drag to reorder, or use the arrow keys"
          onPointerDown={onLift}
          onKeyDown={onHandleKey}
        >
          <Icon name="grip" size={16} />
        </button>
        <button type="button" class="card-title" aria-expanded={open.value} title={summary(about)} onClick={unfold}>
          {card.kind === "filter" ? null : (
            <span class={`card-kind ${card.kind}`}>
              <Icon name={card.kind === "model" ? "face" : "code"} size={14} />
            </span>
          )}
          <span>{card.title}</span>
        </button>
        {card.on && cost !== undefined ? (
          <span class="cost" data-testid="cost" title={`${cost.toFixed(2)} ms on its own`}>
            <span class="cost-bar" style={{ width: `${Math.max(6, (cost / most) * 100)}%` }} />
            <span>{cost < 10 ? cost.toFixed(1) : cost.toFixed(0)} ms</span>
          </span>
        ) : null}
        {card.kind === "kernel" ? (
          <IconButton
            icon="code"
            label={`Edit ${card.title}`}
            pressed={chosen && drawer.value === "kernel"}
            onClick={() => {
              selectedCard.value = card.id;
              drawer.value = drawer.value === "kernel" && chosen ? null : "kernel";
            }}
          />
        ) : null}
        <Switch label={`${card.title} on`} on={card.on} onChange={(on) => void ask("switch", { card: card.id, on })} />
        <MenuButton
          label={`More for ${card.title}`}
          icon="more"
          items={[
            { label: "Duplicate", icon: "copy", run: () => void duplicate() },
            { label: "Reset all", icon: "reset", run: () => void ask("reset", { card: card.id }) },
            { label: "Move up", icon: "chevron", disabled: index === 0, run: () => onMove(index - 1) },
            { label: "Move down", icon: "chevron", disabled: index === count - 1, run: () => onMove(index + 1) },
            null,
            { label: "Remove", icon: "trash", danger: true, run: () => void ask("remove", { card: card.id }) },
          ]}
        />
      </header>
      {card.error ? (
        <p class="card-error" role="alert">
          <Icon name="alert" size={15} /> {card.error}
        </p>
      ) : null}
      {card.on && result?.text ? <Result found={result} /> : null}
      {open.value && params.length > 0 ? (
        <div class="card-body">
          {card.name === "curves" ? <Curves card={card} params={params} /> : usual.map(control)}
          {all.value ? rare.map(control) : null}
          {rare.length > 0 && card.name !== "curves" ? (
            <button type="button" class="link small" aria-expanded={all.value} onClick={() => (all.value = !all.value)}>
              {all.value ? "Fewer" : `More: ${rare.map((each) => each.name.replaceAll("_", " ")).join(", ")}`}
            </button>
          ) : null}
        </div>
      ) : null}
    </li>
  );
}

/** What a model found: in a few words, then one by one. */
function Result({ found }: { found: Findings }): JSX.Element {
  return (
    <div class="card-result" data-testid="result">
      <p>{found.text}</p>
      {found.rows.length > 0 ? (
        <ul>
          {found.rows.map(([name, score], index) => (
            <li key={index}>
              <span class="score-bar" style={{ width: `${Math.round(score * 100)}%` }} />
              <span>{name}</span>
              <output>{(score * 100).toFixed(score < 0.1 ? 1 : 0)} %</output>
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  );
}

/** Several curves of one card as tabs over one square. */
function Curves({ card, params }: { card: Card; params: Param[] }): JSX.Element {
  const shown = useSignal(params[0].name);
  const param = params.find((each) => each.name === shown.value) ?? params[0];
  return (
    <div class="curves">
      <div class="segments" role="tablist" aria-label="Channel">
        {params.map((each) => (
          <button
            key={each.name}
            type="button"
            role="tab"
            class={`segment ${each.name}`}
            aria-selected={each === param}
            onClick={() => (shown.value = each.name)}
          >
            {each.name}
          </button>
        ))}
      </div>
      <Control
        key={param.name}
        param={param}
        value={card.params[param.name]}
        set={(value) => setParam(card, param.name, value)}
        reset={() => void ask("reset", { card: card.id, param: param.name })}
      />
    </div>
  );
}
