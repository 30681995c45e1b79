// The page: top bar, stage, side panel, drawer.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Palette } from "./chain/palette";
import { Chain } from "./chain/chain";
import { PlanDialog } from "./chain/plan";
import { OpenDialog } from "./home/files";
import { CodeDialog, HomeMenu, Jobs, PresetsDialog, RenderDialog } from "./home/home";
import { KernelPanel } from "./kernel/panel";
import { tellView } from "./picture/geometry";
import { Stage } from "./picture/stage";
import { Timeline } from "./picture/timeline";
import { Toolbar } from "./picture/toolbar";
import { ScenePanel } from "./scene/scene";
import { Tracks } from "./scene/tracks";
import { ask, dialog, drawer, openFiles, panel, state, status } from "./store";
import type { Tab } from "./types";
import { Icon, type IconName } from "./ui/icons";
import { KeysDialog, onKey } from "./ui/keys";
import { IconButton, Toasts } from "./ui/parts";
import { nextTheme, theme } from "./ui/theme";

const KINDS: { [kind: string]: IconName } = {
  picture: "image", video: "film", camera: "camera", scene: "layers", kernel: "code",
};

export function App(): JSX.Element {
  const over = useSignal(false);
  useEffect(() => {
    let depth = 0;
    const files = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    const handlers: [string, (event: DragEvent) => void][] = [
      ["dragenter", (event) => {
        if (!files(event)) return;
        event.preventDefault();
        depth++;
        over.value = true;
      }],
      ["dragover", (event) => files(event) && event.preventDefault()],
      ["dragleave", (event) => {
        if (files(event) && --depth <= 0) {
          depth = 0;
          over.value = false;
        }
      }],
      ["drop", (event) => {
        if (!files(event)) return;
        event.preventDefault();
        depth = 0;
        over.value = false;
        void openFiles([...event.dataTransfer!.files]);
      }],
    ];
    for (const [name, handler] of handlers) addEventListener(name, handler as EventListener);
    addEventListener("keydown", onKey);
    document.addEventListener("visibilitychange", tellView);
    return () => {
      for (const [name, handler] of handlers) removeEventListener(name, handler as EventListener);
      removeEventListener("keydown", onKey);
      document.removeEventListener("visibilitychange", tellView);
    };
  }, []);

  const scene = state.value.scene !== null;
  return (
    <>
      <TopBar />
      <main class={drawer.value ? "work with-drawer" : "work"}>
        <div class="view">
          <Stage />
          <div class="under">
            <Timeline />
            <Toolbar />
          </div>
        </div>
        <aside class="side" aria-label="Document">
          {scene ? (
            <div class="side-tabs segments" role="tablist" aria-label="Panel">
              {(["scene", "chain"] as const).map((each) => (
                <button key={each} type="button" role="tab" class="segment" aria-selected={panel.value === each} onClick={() => (panel.value = each)}>
                  {each === "scene" ? "Scene" : "Chain"}
                </button>
              ))}
            </div>
          ) : null}
          <div class="side-scroll">{scene && panel.value === "scene" ? <ScenePanel /> : <Chain />}</div>
          <Jobs />
        </aside>
        {drawer.value === "kernel" ? <KernelPanel /> : null}
        {drawer.value === "tracks" && scene ? <Tracks /> : null}
      </main>
      <Dialogs />
      <Toasts />
      {over.value ? (
        <div class="drop" aria-hidden="true">
          <div>
            <Icon name="upload" size={40} />
            <b>Drop to open</b>
            <span>Pictures, videos, scenes, kernels and presets</span>
          </div>
        </div>
      ) : null}
    </>
  );
}

function Dialogs(): JSX.Element | null {
  switch (dialog.value) {
    case "palette": return <Palette />;
    case "open": return <OpenDialog />;
    case "render": return <RenderDialog />;
    case "plan": return <PlanDialog />;
    case "code": return <CodeDialog />;
    case "presets": return <PresetsDialog />;
    case "keys": return <KeysDialog />;
    default: return null;
  }
}

function TopBar(): JSX.Element {
  return (
    <header class="top">
      <div class="brand">
        <svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
          <path d="M4 24.5 13 8l5 9 2.8-4.5L28 24.5z" class="brand-hill" />
          <circle cx="23.5" cy="8.5" r="3.2" class="brand-sun" />
        </svg>
        <span>Dala <em>Studio</em></span>
      </div>
      <Tabs />
      <div class="top-tools">
        <IconButton icon="undo" label="Undo" keys="Ctrl+Z" disabled={!state.value.undo} testid="undo" onClick={() => void ask("undo")} />
        <IconButton icon="redo" label="Redo" keys="Ctrl+Shift+Z" disabled={!state.value.redo} testid="redo" onClick={() => void ask("redo")} />
        <span class="divider" />
        <Link />
        <IconButton icon={theme.value === "dark" ? "moon" : theme.value === "light" ? "sun" : "auto"} label={`Colors: ${theme.value === "auto" ? "as the system" : theme.value}`} testid="theme" onClick={nextTheme} />
        <IconButton icon="help" label="Keys" keys="?" class="wide-only" onClick={() => (dialog.value = "keys")} />
        <HomeMenu />
      </div>
    </header>
  );
}

/** The state of the connection; silent while all is well. */
function Link(): JSX.Element | null {
  const value = status.value;
  if (value === "open") return null;
  const text =
    value === "refused"
      ? "The studio was started again. Open the address that it printed."
      : value === "connecting" ? "Connecting…" : "Connection lost. Trying again…";
  return (
    <span class={`link-state ${value}`} role="status" data-testid="link">
      <span class="link-dot" aria-hidden="true" /> {text}
    </span>
  );
}

function Tabs(): JSX.Element {
  const { tabs, active } = state.value;
  function onKeyDown(event: KeyboardEvent, index: number): void {
    let to = -1;
    if (event.key === "ArrowRight") to = (index + 1) % tabs.length;
    else if (event.key === "ArrowLeft") to = (index + tabs.length - 1) % tabs.length;
    else if (event.key === "Delete") void ask("close", { tab: tabs[index].id });
    else return;
    event.preventDefault();
    event.stopPropagation();
    if (to >= 0) {
      void ask("tab", { tab: tabs[to].id });
      (event.currentTarget as HTMLElement).parentElement!.parentElement!.querySelectorAll<HTMLElement>("[role=tab]")[to]?.focus();
    }
  }
  return (
    <nav class="tabs" aria-label="Sources">
      <div class="tab-list" role="tablist" aria-label="Open sources">
        {tabs.map((tab, index) => (
          <TabView key={tab.id} tab={tab} active={tab.id === active} onKeyDown={(event) => onKeyDown(event, index)} />
        ))}
      </div>
      <IconButton icon="plus" label="Open" keys="Ctrl+O" testid="open" onClick={() => (dialog.value = "open")} />
    </nav>
  );
}

function TabView(props: { tab: Tab; active: boolean; onKeyDown: (event: KeyboardEvent) => void }): JSX.Element {
  const { tab, active } = props;
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (active) root.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [active, tab.title]);
  return (
    <div ref={root} class={active ? "tab active" : "tab"} data-testid="tab" role="presentation">
      <button
        type="button"
        role="tab"
        class="tab-name"
        aria-selected={active}
        tabIndex={active ? 0 : -1}
        title={tab.path ?? tab.title}
        onClick={() => void ask("tab", { tab: tab.id })}
        onAuxClick={(event) => event.button === 1 && void ask("close", { tab: tab.id })}
        onKeyDown={props.onKeyDown}
      >
        <Icon name={KINDS[tab.kind] ?? "image"} size={15} />
        <span>{tab.title}</span>
        {tab.dirty ? <i class="dirty" title="Not saved" /> : null}
      </button>
      <button type="button" class="tab-close" tabIndex={active ? 0 : -1} aria-label={`Close ${tab.title}`} onClick={() => void ask("close", { tab: tab.id })}>
        <Icon name="close" size={12} />
      </button>
    </div>
  );
}
