// Small parts that everything else is made of: buttons, menus, dialogs, switches, notices.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { dismiss, toasts } from "../store";
import { Icon, type IconName } from "./icons";

interface ButtonProps {
  icon: IconName;
  label: string;
  onClick: (event: MouseEvent) => void;
  disabled?: boolean;
  pressed?: boolean;
  class?: string;
  keys?: string;
  size?: number;
  testid?: string;
}

/** A button with an icon; its label is its tooltip and its name. */
export function IconButton(props: ButtonProps): JSX.Element {
  const title = props.keys ? `${props.label} (${props.keys})` : props.label;
  return (
    <button
      type="button"
      class={`icon-button ${props.class ?? ""}`}
      aria-label={props.label}
      aria-pressed={props.pressed}
      aria-keyshortcuts={props.keys}
      title={title}
      disabled={props.disabled}
      data-testid={props.testid}
      onClick={props.onClick}
    >
      <Icon name={props.icon} size={props.size ?? 18} />
    </button>
  );
}

export function Switch(props: { on: boolean; label: string; onChange: (on: boolean) => void }): JSX.Element {
  return (
    <button
      type="button"
      role="switch"
      class="switch"
      aria-checked={props.on}
      aria-label={props.label}
      title={props.label}
      onClick={() => props.onChange(!props.on)}
    >
      <span class="switch-knob" />
    </button>
  );
}

/** A modal dialog on the browser's own <dialog>: focus stays inside, Escape closes it. */
export function Dialog(props: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  class?: string;
  bare?: boolean;
}): JSX.Element {
  const ref = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useLayoutEffect(() => {
    const element = ref.current!;
    element.showModal();
    const first = element.querySelector<HTMLElement>("[data-focus]");
    first?.focus();
    return () => element.close();
  }, []);
  return (
    <dialog
      ref={ref}
      class={`dialog ${props.class ?? ""}`}
      aria-labelledby={props.bare ? undefined : heading}
      aria-label={props.bare ? props.title : undefined}
      onCancel={(event) => {
        event.preventDefault();
        props.onClose();
      }}
      onPointerDown={(event) => {
        if (event.target === ref.current) props.onClose();
      }}
    >
      <div class="dialog-body">
        {props.bare ? null : (
          <header class="dialog-head">
            <h2 id={heading}>{props.title}</h2>
            <IconButton icon="close" label="Close" onClick={props.onClose} />
          </header>
        )}
        {props.children}
      </div>
    </dialog>
  );
}

export interface MenuItem {
  label: string;
  icon?: IconName;
  hint?: string;
  disabled?: boolean;
  danger?: boolean;
  run: () => void;
}

/** A button that opens a menu: arrow keys move, Escape closes, focus returns to the button. */
export function MenuButton(props: {
  label: string;
  icon?: IconName;
  text?: string;
  class?: string;
  items: (MenuItem | null)[];
}): JSX.Element {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);

  function entries(): HTMLButtonElement[] {
    return [...(list.current?.querySelectorAll<HTMLButtonElement>("[role=menuitem]:not(:disabled)") ?? [])];
  }
  function close(): void {
    setOpen(false);
    button.current?.focus();
  }
  useLayoutEffect(() => {
    if (!open) return;
    entries()[0]?.focus();
    const box = list.current!.getBoundingClientRect();
    if (box.bottom > innerHeight - 8) list.current!.classList.add("menu-up");
    if (box.left < 8) list.current!.classList.add("menu-left");
    function outside(event: PointerEvent): void {
      if (!root.current!.contains(event.target as Node)) setOpen(false);
    }
    addEventListener("pointerdown", outside);
    return () => removeEventListener("pointerdown", outside);
  }, [open]);

  function onKeyDown(event: KeyboardEvent): void {
    if (!open) {
      if (event.key === "ArrowDown") {
        event.preventDefault();
        setOpen(true);
      }
      return;
    }
    const all = entries();
    const at = all.indexOf(document.activeElement as HTMLButtonElement);
    if (event.key === "Escape" || event.key === "Tab") {
      event.stopPropagation();
      event.preventDefault();
      close();
    } else if (event.key === "ArrowDown") all[(at + 1) % all.length]?.focus();
    else if (event.key === "ArrowUp") all[(at + all.length - 1) % all.length]?.focus();
    else if (event.key === "Home") all[0]?.focus();
    else if (event.key === "End") all[all.length - 1]?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  return (
    <div class="menu-root" ref={root} onKeyDown={onKeyDown}>
      <button
        ref={button}
        type="button"
        class={props.text ? `button ${props.class ?? ""}` : `icon-button ${props.class ?? ""}`}
        aria-label={props.label}
        title={props.label}
        aria-haspopup="menu"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        {props.icon ? <Icon name={props.icon} /> : null}
        {props.text ? <span class="button-text">{props.text}</span> : null}
      </button>
      {open ? (
        <div class="menu" role="menu" aria-label={props.label} ref={list}>
          {props.items.map((item, index) =>
            item === null ? (
              <hr key={index} />
            ) : (
              <button
                key={index}
                type="button"
                role="menuitem"
                class={item.danger ? "menu-item danger" : "menu-item"}
                disabled={item.disabled}
                tabIndex={-1}
                onClick={() => {
                  close();
                  item.run();
                }}
              >
                {item.icon ? <Icon name={item.icon} size={16} /> : <span class="menu-gap" />}
                <span>{item.label}</span>
                {item.hint ? <kbd>{item.hint}</kbd> : null}
              </button>
            ),
          )}
        </div>
      ) : null}
    </div>
  );
}

export function Toasts(): JSX.Element {
  return (
    <div class="toasts">
      {toasts.value.map((each) => (
        <div key={each.id} class={`toast ${each.kind}`} role={each.kind === "error" ? "alert" : "status"}>
          <Icon name={each.kind === "error" ? "alert" : each.kind === "done" ? "check" : "spark"} />
          <span class="toast-text">{each.text}</span>
          {each.action ? (
            <button
              type="button"
              class="link"
              onClick={() => {
                dismiss(each.id);
                each.action!.run();
              }}
            >
              {each.action.label}
            </button>
          ) : null}
          <IconButton icon="close" label="Dismiss" size={14} onClick={() => dismiss(each.id)} />
        </div>
      ))}
    </div>
  );
}

/** Follow one pointer from its press to its release. */
export function drag(
  event: PointerEvent,
  move: (event: PointerEvent) => void,
  end: (event: PointerEvent, cancelled: boolean) => void = () => {},
): void {
  const target = event.currentTarget as Element;
  target.setPointerCapture(event.pointerId);
  const stop = new AbortController();
  const finish = (last: PointerEvent, cancelled: boolean) => {
    if (last.pointerId !== event.pointerId) return;
    stop.abort();
    end(last, cancelled);
  };
  const options = { signal: stop.signal };
  target.addEventListener(
    "pointermove",
    (next) => {
      if ((next as PointerEvent).pointerId === event.pointerId) move(next as PointerEvent);
    },
    options,
  );
  target.addEventListener("pointerup", (last) => finish(last as PointerEvent, false), options);
  target.addEventListener("pointercancel", (last) => finish(last as PointerEvent, true), options);
}

/** The size of an element in CSS pixels, kept current. */
export function useSize(ref: { current: HTMLElement | null }): { width: number; height: number } {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useEffect(() => {
    const element = ref.current!;
    const observer = new ResizeObserver(() => {
      setSize({ width: element.clientWidth, height: element.clientHeight });
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return size;
}
