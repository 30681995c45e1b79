// Files of the allowed folders, and the dialog that opens sources.
import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { ask, catalogue, connection, dialog, openFiles, toast } from "../store";
import { Icon, type IconName } from "../ui/icons";
import { Dialog } from "../ui/parts";

interface Listing {
  path: string | null;
  parent: string | null;
  folders: string[];
  files: { name: string; kind: string; bytes: number }[];
}

const ICONS: { [kind: string]: IconName } = {
  picture: "image", video: "film", scene: "layers", kernel: "code", lut: "sliders", preset: "bookmark",
};

function joined(folder: string | null, name: string): string {
  if (folder === null) return name;
  return folder.endsWith("/") ? folder + name : `${folder}/${name}`;
}

/** A list of files that goes up and down the folders. */
export function FileList(props: { kinds: string[] | null; onChoose: (path: string) => void }): JSX.Element {
  const listing = useSignal<Listing | null>(null);
  async function go(under: string | null): Promise<void> {
    const query = under === null ? "" : `?under=${encodeURIComponent(under)}`;
    try {
      const answer = await fetch(`files${query}`, { cache: "no-store" });
      const reply = await answer.json();
      if (!answer.ok) throw new Error(reply.error?.text);
      listing.value = reply;
    } catch (error) {
      toast("error", (error as Error).message || "The folder could not be read.");
    }
  }
  useEffect(() => {
    void go(null).then(() => {
      const roots = listing.value?.folders ?? [];
      if (roots.length === 1) void go(roots[0]);
    });
  }, []);
  const current = listing.value;
  if (!current) return <p class="quiet">Reading…</p>;
  const files = current.files.filter((file) =>
    props.kinds ? props.kinds.includes(file.kind) : file.kind !== "other",
  );
  return (
    <div class="files">
      <p class="files-path">
        <button type="button" class="link" disabled={current.path === null} onClick={() => void go(current.parent)}>
          Up
        </button>
        <span>{current.path ?? "Folders"}</span>
      </p>
      <ul class="file-list" aria-label="Files">
        {current.folders.map((name) => (
          <li key={`folder ${name}`}>
            <button type="button" class="file-row" onClick={() => void go(joined(current.path, name))}>
              <Icon name="folder" size={16} />
              <span>{name}</span>
            </button>
          </li>
        ))}
        {files.map((file) => (
          <li key={file.name}>
            <button type="button" class="file-row" onClick={() => props.onChoose(joined(current.path, file.name))}>
              <Icon name={ICONS[file.kind] ?? "square"} size={16} />
              <span>{file.name}</span>
              <small>{size(file.bytes)}</small>
            </button>
          </li>
        ))}
        {files.length + current.folders.length === 0 ? <li class="quiet">No files of this kind are here.</li> : null}
      </ul>
    </div>
  );
}

function size(bytes: number): string {
  if (bytes >= 1e9) return `${(bytes / 1e9).toFixed(1)} GB`;
  if (bytes >= 1e6) return `${(bytes / 1e6).toFixed(1)} MB`;
  return `${Math.max(1, Math.round(bytes / 1e3))} kB`;
}

export function FileDialog(props: {
  title: string;
  kinds: string[] | null;
  onClose: () => void;
  onChoose: (path: string) => void;
}): JSX.Element {
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <FileList kinds={props.kinds} onChoose={props.onChoose} />
    </Dialog>
  );
}

export function OpenDialog(): JSX.Element {
  const cameras = useSignal<{ id: string | number; title: string }[] | null>(null);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    connection
      .request("cameras")
      .then((reply) => (cameras.value = (reply.cameras as never) ?? []))
      .catch(() => (cameras.value = []));
  }, []);
  function open(values: { [key: string]: unknown }): void {
    dialog.value = null;
    void ask("open", values);
  }
  return (
    <Dialog title="Open" class="open" onClose={() => (dialog.value = null)}>
      <div class="open-columns">
        <Group title="This computer">
          <button type="button" class="button" data-focus onClick={() => input.current?.click()}>
            <Icon name="upload" /> Send a file…
          </button>
          <p class="quiet">You can also drop files anywhere on the page.</p>
          <input
            ref={input}
            type="file"
            multiple
            class="hidden"
            tabIndex={-1}
            aria-label="Send a file"
            onChange={(event) => {
              const files = [...(event.currentTarget.files ?? [])];
              dialog.value = null;
              void openFiles(files);
            }}
          />
        </Group>
        <Group title="Samples">
          {(["picture", "video"] as const).map((kind) => (
            <ul key={kind} class="chips" aria-label={kind === "video" ? "Sample videos" : "Sample pictures"}>
              {catalogue.value.samples.filter((each) => (each.kind === "video") === (kind === "video")).map((sample) => (
                <li key={sample.name}>
                  <button type="button" class="chip" onClick={() => open({ sample: sample.name, kind: sample.kind })}>
                    <Icon name={kind === "video" ? "film" : "image"} size={15} /> {sample.name}
                  </button>
                </li>
              ))}
            </ul>
          ))}
        </Group>
        <Group title="Cameras">
          {cameras.value === null ? <p class="quiet">Looking for cameras…</p> : null}
          {cameras.value?.length === 0 ? <p class="quiet">No camera is connected to the computer that runs the studio.</p> : null}
          <ul class="chips">
            {(cameras.value ?? []).map((camera) => (
              <li key={camera.id}>
                <button type="button" class="chip" onClick={() => open({ camera: camera.id })}>
                  <Icon name="camera" size={15} /> {camera.title}
                </button>
              </li>
            ))}
          </ul>
        </Group>
      </div>
      <Group title="Folders of the studio">
        <FileList kinds={null} onChoose={(path) => open({ path })} />
      </Group>
    </Dialog>
  );
}

function Group(props: { title: string; children: ComponentChildren }): JSX.Element {
  return (
    <section class="group">
      <h3>{props.title}</h3>
      {props.children}
    </section>
  );
}
