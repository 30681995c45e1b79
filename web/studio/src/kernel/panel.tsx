// The drawer with the text of a kernel and the code that became of it.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { card, catalogue, connection, drawer, state as document, toast } from "../store";
import type { Card, Diagnostic } from "../types";
import { Icon } from "../ui/icons";
import { IconButton } from "../ui/parts";
import type { CodeEditor } from "./editor";

/** Milliseconds after the last key before the text is sent, and before typing becomes a new step of undo. */
const REST = 60;
const STEP = 1200;

export function KernelPanel(): JSX.Element | null {
  const owner = card.value;
  if (!owner || owner.kind !== "kernel") {
    return (
      <section class="drawer" aria-label="Kernel">
        <p class="quiet center">Select a kernel card to edit it.</p>
      </section>
    );
  }
  return <Panel key={owner.id} owner={owner} />;
}

type Shown = "python" | "wgsl" | "llvm";

function Panel({ owner }: { owner: Card }): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const made = useRef<HTMLDivElement>(null);
  const editor = useRef<CodeEditor | null>(null);
  const viewer = useRef<CodeEditor | null>(null);
  const shown = useSignal<Shown>("python");
  const problems = useSignal<Diagnostic[]>(owner.diagnostics ?? []);
  const code = useRef<{ wgsl: string; llvm: string }>({ wgsl: "", llvm: "" });
  const sending = useRef({
    timer: 0, busy: false, again: false, last: owner.text ?? "", stroke: 0, step: 0,
  });

  async function send(): Promise<void> {
    const state = sending.current;
    if (state.busy) {
      state.again = true;
      return;
    }
    const text = editor.current?.text ?? owner.text ?? "";
    state.busy = true;
    state.last = text;
    try {
      const reply = await connection.request("kernel", {
        card: owner.id, text, drag: `typing ${owner.id} ${state.step}`, code: shown.value !== "python",
      });
      problems.value = (reply.diagnostics as unknown as Diagnostic[]) ?? [];
      editor.current?.mark(problems.value);
      code.current = { wgsl: String(reply.wgsl ?? ""), llvm: String(reply.llvm ?? "") };
      if (viewer.current && shown.value !== "python") viewer.current.text = code.current[shown.value];
    } catch (error) {
      if (connection.ready) toast("error", (error as Error).message);
    }
    state.busy = false;
    if (state.again) {
      state.again = false;
      void send();
    } else {
      adopt();
    }
  }
  // Shows a text that did not come from here: undo, redo, or another page. The state that has the own
  // text comes before the reply; what was drawn of it may be older.
  function adopt(): void {
    const state = sending.current;
    const found = document.value.chain.find((each) => each.id === owner.id);
    if (state.busy || state.timer || found?.text === undefined || found.text === state.last) return;
    state.last = found.text;
    if (editor.current) {
      editor.current.text = found.text;
      problems.value = found.diagnostics ?? [];
      editor.current.mark(problems.value);
    }
  }
  function later(): void {
    const state = sending.current;
    const time = performance.now();
    if (time - state.stroke > STEP) state.step = Math.round(time);
    state.stroke = time;
    clearTimeout(state.timer);
    state.timer = setTimeout(() => {
      state.timer = 0;
      void send();
    }, REST) as unknown as number;
  }

  useEffect(() => {
    let gone = false;
    void import("./editor").then(({ CodeEditor }) => {
      if (gone || !host.current) return;
      editor.current = new CodeEditor(host.current, {
        language: "python",
        text: owner.text ?? "",
        label: `Text of the kernel ${owner.title}`,
        words: catalogue.value.language,
        onChange: (text) => {
          if (text !== sending.current.last) later();
        },
      });
      editor.current.mark(problems.value);
      editor.current.focus();
    });
    return () => {
      gone = true;
      if (sending.current.timer) {
        clearTimeout(sending.current.timer);
        void send();
      }
      editor.current?.destroy();
      viewer.current?.destroy();
    };
  }, []);

  useEffect(adopt, [owner.text]);

  useEffect(() => {
    if (shown.value === "python") return;
    let gone = false;
    void import("./editor").then(({ CodeEditor }) => {
      if (gone || !made.current) return;
      viewer.current = new CodeEditor(made.current, {
        language: shown.value, text: "", label: `${shown.value.toUpperCase()} code`, words: [], readOnly: true,
      });
      void send();
    });
    return () => {
      gone = true;
      viewer.current?.destroy();
      viewer.current = null;
    };
  }, [shown.value]);

  const count = problems.value.length;
  return (
    <section class="drawer kernel" aria-label={`Kernel ${owner.title}`}>
      <header class="drawer-head">
        <Icon name="code" size={16} />
        <b>{owner.title}</b>
        <div class="segments" role="tablist" aria-label="Code">
          {(["python", "wgsl", "llvm"] as const).map((each) => (
            <button
              key={each}
              type="button"
              role="tab"
              class="segment"
              aria-selected={shown.value === each}
              onClick={() => (shown.value = each)}
            >
              {each === "python" ? "Kernel" : each.toUpperCase()}
            </button>
          ))}
        </div>
        <span class={count ? "problems bad" : "problems good"} role="status" data-testid="problems">
          <Icon name={count ? "alert" : "check"} size={15} />
          {count === 0 ? "Running" : count === 1 ? problems.value[0].message.split("\n")[0] : `${count} problems`}
        </span>
        <IconButton icon="close" label="Close the editor" onClick={() => (drawer.value = null)} />
      </header>
      <div class={shown.value === "python" ? "editor" : "editor hidden"} ref={host} data-testid="editor" data-editor />
      {shown.value !== "python" ? (
        <div class="editor" key={shown.value} ref={made} data-testid={`code-${shown.value}`} data-editor />
      ) : null}
    </section>
  );
}
