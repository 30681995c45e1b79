// Taking the work home: code to copy, files to save, renders and exported pages.
import { type Signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { clock } from "../picture/geometry";
import { ask, catalogue, closeDialog, code, dialog, jobs, loop, node, nodes, panel, state, tab, toast } from "../store";
import type { Job, SceneNode } from "../types";
import { Icon } from "../ui/icons";
import { Dialog, IconButton, MenuButton, Switch } from "../ui/parts";

const TITLES: { [as: string]: string } = {
  python: "Python", command: "command line", preset: "preset", scene: "scene.json",
};

/** Copy a text; false where the browser does not allow it, as without a secure connection. */
async function toClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** Copy the tab as text. Where a kernel does not compile, the toast offers its last good text. */
export async function copyAs(as: "python" | "command" | "preset", last_good = false): Promise<void> {
  const again = { label: "Copy the last good one", run: () => void copyAs(as, true) };
  const reply = await ask("copy", { as, last_good }, (failure) =>
    failure.argument === "last_good" ? again : undefined,
  );
  if (!reply) return;
  code.value = { title: TITLES[as], text: String(reply.text) };
  const view = { label: "View", run: () => (dialog.value = "code") };
  if (await toClipboard(code.value.text)) toast("done", `Copied as ${TITLES[as]}.`, view);
  else dialog.value = "code";
}

export async function saveText(as: "preset" | "scene", name: string): Promise<void> {
  const reply = await ask("copy", { as });
  if (reply) download(name, String(reply.text));
}

/** Save a text as a file of this computer. */
function download(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export async function saveScene(): Promise<void> {
  const reply = await ask("scene_save");
  if (reply) toast("done", `Saved ${reply.path ?? "the scene"}.`);
}

async function saveKernel(card: string): Promise<void> {
  const reply = await ask("kernel_save", { card });
  if (reply) toast("done", `Saved ${reply.path ?? "the kernel"}.`);
}

/** The selected node of a scene, if it is an effect or has effects. */
function withEffects(): SceneNode | null {
  const chosen = panel.value === "scene" ? node.value : null;
  if (chosen === null || chosen.type === "effect") return chosen;
  const own = chosen.children.some((each) => each.type === "effect" && each.properties.input === undefined);
  const on = nodes.value.some((each) => each.type === "effect" && each.properties.input === chosen.properties.id);
  return own || (on && chosen.properties.id !== undefined) ? chosen : null;
}

export function HomeMenu(): JSX.Element {
  const none = state.value.active === null;
  const scene = state.value.scene !== null;
  const kernel = state.value.chain.find((each) => each.kind === "kernel" && each.path);
  const effect = withEffects();
  return (
    <MenuButton
      label="Take it home"
      text="Take it home"
      icon="home"
      class="primary"
      items={[
        { label: "Copy as Python", icon: "code", disabled: none, run: () => void copyAs("python") },
        { label: "Copy as command line", icon: "terminal", disabled: none, run: () => void copyAs("command") },
        null,
        ...(scene
          ? [
              { label: "Save scene.json", icon: "save" as const, hint: "Ctrl S", run: () => void saveScene() },
              { label: "Download scene.json", icon: "layers" as const, run: () => void saveText("scene", "scene.json") },
            ]
          : []),
        ...(kernel
          ? [{ label: "Save the kernel", icon: "save" as const, run: () => void saveKernel(kernel.id) }]
          : []),
        { label: "Save as a preset", icon: "bookmark", disabled: none, run: () => void saveText("preset", "chain.json") },
        null,
        { label: "Render to a file…", icon: "film", disabled: none, run: () => (dialog.value = "render") },
        {
          label: effect ? `Export “${effect.name}” as a web page` : "Export as a web page",
          icon: "web",
          disabled: none,
          run: () =>
            void ask("export", effect ? { node: effect.id } : {}).then(
              (reply) => reply && toast("notice", "The page is being made."),
            ),
        },
      ]}
    />
  );
}

export function CodeDialog(): JSX.Element {
  const area = useRef<HTMLTextAreaElement>(null);
  const { title, text } = code.value;
  useEffect(() => area.current?.select(), []);
  return (
    <Dialog title={`As ${title}`} class="code" onClose={() => (dialog.value = null)}>
      <textarea ref={area} class="code-text" readOnly spellcheck={false} aria-label={`As ${title}`} rows={Math.min(22, text.split("\n").length + 1)} value={text} data-testid="code" />
      <footer class="dialog-foot">
        <button
          type="button"
          class="button primary"
          data-focus
          onClick={async () => {
            if (!(await toClipboard(text))) {
              area.current!.select();
              document.execCommand("copy");
            }
            closeDialog("code");
            toast("done", `Copied as ${title}.`);
          }}
        >
          <Icon name="copy" /> Copy
        </button>
      </footer>
    </Dialog>
  );
}

const VIDEO = ["mp4", "webm", "mkv", "mov", "gif", "png"];
const PICTURE = ["png", "jpg", "webp", "avif", "tif"];

interface OptionRangeProps {
  name: string;
  label: string;
  /** The chosen value; null for the default. */
  chosen: Signal<number | null>;
  least?: number;
  most?: number;
  note?: string;
}

/** A slider of an option of rendering, with the range and the default of the catalogue. */
function OptionRange({ name, label, chosen, least, most, note }: OptionRangeProps): JSX.Element {
  const option = catalogue.value.render?.find((each) => each.name === name);
  const low = least ?? option?.low ?? 0;
  const high = most ?? option?.high ?? 100;
  const value = chosen.value ?? (typeof option?.default === "number" ? option.default : null);
  const shown = value ?? Math.round((low + high) / 2);
  return (
    <label class="field">
      <span class="field-label">{label}</span>
      <input
        type="range"
        class="range"
        min={low}
        max={high}
        step={1}
        value={shown}
        style={{ "--filled": `${((shown - low) / (high - low)) * 100}%` }}
        onInput={(event) => (chosen.value = Number(event.currentTarget.value))}
      />
      <output>{value ?? "automatic"}</output>
      {note ? <span class="quiet">{note}</span> : null}
    </label>
  );
}

export function RenderDialog(): JSX.Element {
  const current = tab.value;
  const moving = current !== null && (current.live || (current.duration ?? 0) > 0);
  const known = catalogue.value.formats;
  const formats = (moving ? (known?.video ?? VIDEO) : (known?.picture ?? PICTURE)).map((each) => each.replace(/^\./, ""));
  const format = useSignal(formats[0]);
  const crf = useSignal<number | null>(null);
  const quality = useSignal<number | null>(null);
  const path = useSignal("");
  const seconds = useSignal<number | null>(null);
  const part = useSignal(true);
  const repeats = moving && !current.live ? loop.value : null;
  const video = ["mp4", "webm", "mkv", "mov"].includes(format.value);
  const isVideo = video || format.value === "gif";
  const lossy = ["jpg", "jpeg", "webp"].includes(format.value);
  async function start(): Promise<void> {
    const options: { [key: string]: unknown } = {};
    if (video && crf.value !== null) options.crf = crf.value;
    if (lossy && quality.value !== null) options.quality = quality.value;
    if (current?.live && seconds.value !== null) options.seconds = seconds.value;
    const values: { [key: string]: unknown } = { format: format.value, options };
    if (repeats && part.value && isVideo) values.loop = true;
    if (path.value.trim()) values.path = path.value.trim();
    const reply = await ask("render", values);
    if (reply) closeDialog("render");
  }
  return (
    <Dialog title="Render to a file" class="render" onClose={() => (dialog.value = null)}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void start();
        }}
      >
        <div class="field">
          <span class="field-label">Format</span>
          <div class="segments" role="radiogroup" aria-label="Format">
            {formats.map((each) => (
              <button
                key={each}
                type="button"
                role="radio"
                class="segment"
                aria-checked={format.value === each}
                onClick={() => (format.value = each)}
              >
                {each}
              </button>
            ))}
          </div>
        </div>
        {video ? <OptionRange name="crf" label="Quality (CRF)" chosen={crf} note="Lower is better and larger." /> : null}
        {lossy ? <OptionRange name="quality" label="Quality" chosen={quality} /> : null}
        {repeats && isVideo ? (
          <div class="field">
            <span class="field-label">Only the loop</span>
            <Switch label="Only the loop" on={part.value} onChange={(on) => (part.value = on)} />
            <span class="quiet">
              From {clock(repeats[0])} to {clock(repeats[1])}
            </span>
          </div>
        ) : null}
        {current?.live ? <OptionRange name="seconds" label="Seconds" chosen={seconds} least={1} most={120} /> : null}
        <label class="field">
          <span class="field-label">File</span>
          <input
            type="text"
            class="box text"
            placeholder="Empty: download with the browser"
            spellcheck={false}
            value={path.value}
            onInput={(event) => (path.value = event.currentTarget.value)}
          />
          <span class="quiet">A path in one of the folders of the studio.</span>
        </label>
        <footer class="dialog-foot">
          <button type="submit" class="button primary" data-focus>
            <Icon name="film" /> Render
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** Renders and exports that are under way or finished. */
export function Jobs(): JSX.Element | null {
  const shown = jobs.value.filter((job) => job.state === "running" || job.state === "done");
  if (shown.length === 0) return null;
  return (
    <section class="jobs" aria-label="Renders">
      {shown.map((job) => (
        <JobRow key={job.id} job={job} />
      ))}
    </section>
  );
}

function JobRow({ job }: { job: Job }): JSX.Element {
  const running = job.state === "running";
  const share = job.total ? Math.min(job.done / job.total, 1) : 0;
  return (
    <div class={`job ${job.state}`} data-testid="job" data-state={job.state}>
      <div class="job-text">
        <b>{job.title ?? "Render"}</b>
        <small>
          {running
            ? `${job.done}${job.total ? ` of ${job.total}` : ""}${job.rate ? `, ${job.rate.toFixed(0)} a second` : ""}`
            : (job.path ?? "Finished")}
        </small>
        {job.notes?.length ? (
          <details class="job-notes">
            <summary>{job.notes.length === 1 ? "1 note" : `${job.notes.length} notes`}</summary>
            <ul>
              {job.notes.map((note) => (
                <li key={note}>{note}</li>
              ))}
            </ul>
          </details>
        ) : null}
      </div>
      {running ? (
        <>
          <progress max={1} value={job.total ? share : undefined} aria-label={`${job.title ?? "Render"}: progress`} />
          <button type="button" class="button small" onClick={() => void ask("cancel", { job: job.id })}>
            Cancel
          </button>
        </>
      ) : (
        <>
          {job.download ? (
            <a class="button small primary" href={target(job.download)} download>
              <Icon name="home" size={15} /> Download
            </a>
          ) : null}
          <IconButton
            icon="close"
            size={14}
            label="Remove from the list"
            onClick={() => (jobs.value = jobs.value.filter((each) => each.id !== job.id))}
          />
        </>
      )}
    </div>
  );
}

/** The address of a download: the server names its id, or its path under the application. */
function target(download: string): string {
  return download.includes("/") ? download.replace(/^\//, "") : `download/${download}`;
}

export function PresetsDialog(): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  const presets = catalogue.value.presets ?? [];
  const none = state.value.active === null;
  async function load(file: File): Promise<void> {
    let value: unknown;
    try {
      value = JSON.parse(await file.text());
    } catch {
      toast("error", `${file.name} is not JSON.`);
      return;
    }
    if (await ask("preset", { value })) closeDialog("presets");
  }
  return (
    <Dialog title="Presets" class="presets" onClose={() => (dialog.value = null)}>
      <p class="quiet">A preset is a chain as a JSON file. It replaces the chain; undo brings the old one back.</p>
      {presets.length > 0 ? (
        <ul class="chips">
          {presets.map((preset) => (
            <li key={preset.name}>
              <button
                type="button"
                class="chip"
                title={preset.doc}
                disabled={none}
                onClick={() => void ask("preset", { value: preset.value }).then((reply) => reply && closeDialog("presets"))}
              >
                <Icon name="spark" size={15} /> {preset.title}
              </button>
            </li>
          ))}
        </ul>
      ) : null}
      <footer class="dialog-foot spread">
        <button type="button" class="button" disabled={none} onClick={() => input.current?.click()}>
          <Icon name="folder" /> Load a preset…
        </button>
        <button type="button" class="button" disabled={none} onClick={() => void copyAs("preset")}>
          <Icon name="copy" /> Copy
        </button>
        <button type="button" class="button primary" data-focus disabled={none} onClick={() => void saveText("preset", "chain.json")}>
          <Icon name="save" /> Save this chain
        </button>
      </footer>
      <input
        ref={input}
        type="file"
        class="hidden"
        tabIndex={-1}
        accept=".json,application/json"
        aria-label="Load a preset"
        data-testid="preset-file"
        onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          event.currentTarget.value = "";
          if (file) void load(file);
        }}
      />
    </Dialog>
  );
}
