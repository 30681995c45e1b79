// The chain: its cards, in order, and what can be done with all of them.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { ask, dialog, state, stats } from "../store";
import { Icon } from "../ui/icons";
import { IconButton, drag } from "../ui/parts";
import { CardView } from "./card";

export interface Lifted {
  id: string;
  from: number;
  to: number;
  /** Pixels that the card was moved down. */
  by: number;
  height: number;
}

export function Chain(): JSX.Element {
  const cards = state.value.chain;
  const list = useRef<HTMLOListElement>(null);
  const lifted = useSignal<Lifted | null>(null);
  const spoken = useSignal("");

  function move(id: string, to: number): void {
    const from = cards.findIndex((each) => each.id === id);
    if (to < 0 || to >= cards.length || to === from) return;
    spoken.value = `${cards[from].title} is now ${to + 1} of ${cards.length}.`;
    void ask("move", { card: id, to });
  }

  function lift(event: PointerEvent, id: string): void {
    if (event.button !== 0) return;
    event.preventDefault();
    (event.currentTarget as HTMLElement).focus();
    const items = [...list.current!.children] as HTMLElement[];
    const from = cards.findIndex((each) => each.id === id);
    const boxes = items.map((item) => item.getBoundingClientRect());
    const start = event.clientY;
    drag(
      event,
      (next) => {
        const by = next.clientY - start;
        const middle = boxes[from].top + boxes[from].height / 2 + by;
        let to = 0;
        for (let i = 0; i < boxes.length; i++) {
          if (i !== from && boxes[i].top + boxes[i].height / 2 < middle) to++;
        }
        lifted.value = { id, from, to, by, height: boxes[from].height + 10 };
      },
      (_, cancelled) => {
        const last = lifted.value;
        lifted.value = null;
        if (last && !cancelled) move(id, last.to);
      },
    );
  }

  const total = stats.value.total;
  return (
    <section class="chain" aria-label="Chain">
      <header class="panel-head">
        <h2>Chain</h2>
        {cards.length > 0 && total ? <span class="cost-total" data-testid="total">{total.toFixed(1)} ms</span> : null}
        <span class="grow" />
        <IconButton icon="bookmark" label="Presets" onClick={() => (dialog.value = "presets")} />
        <IconButton
          icon="flow"
          label="Show the fused plan"
          disabled={cards.length === 0}
          onClick={() => (dialog.value = "plan")}
        />
        <button
          type="button"
          class="button primary small"
          data-testid="add"
          disabled={state.value.active === null}
          aria-keyshortcuts="Control+K"
          title="Add a card (Ctrl+K)"
          onClick={() => (dialog.value = "palette")}
        >
          <Icon name="plus" size={16} /> Add
        </button>
      </header>
      {cards.length === 0 ? (
        <div class="empty">
          <Icon name="sliders" size={26} />
          <p>
            The chain is empty: the picture is shown as it is.
            {state.value.active ? (
              <>
                {" "}Press <kbd>Ctrl</kbd> <kbd>K</kbd> to add a filter.
              </>
            ) : null}
          </p>
        </div>
      ) : (
        <ol class="cards" ref={list}>
          {cards.map((card, index) => (
            <CardView
              key={card.id}
              card={card}
              index={index}
              count={cards.length}
              lifted={lifted.value}
              onLift={(event) => lift(event, card.id)}
              onMove={(to) => move(card.id, to)}
            />
          ))}
        </ol>
      )}
      <p class="spoken" role="status" aria-live="polite">
        {spoken.value}
      </p>
    </section>
  );
}
