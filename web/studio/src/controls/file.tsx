// A file as a parameter: chosen in the allowed folders, or sent from this computer.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { FileDialog } from "../home/files";
import { upload } from "../store";
import type { Json, Param } from "../types";
import { MenuButton, type MenuItem } from "../ui/parts";

const ACCEPT: { [type: string]: string } = {
  lut: ".cube,.3dl,.png,.npy",
  picture: "image/*",
  map: ".npy,.json,.png",
};

export function baseName(path: string): string {
  return path.split(/[\\/]/).pop() || path;
}

export function FileControl(props: {
  param: Param;
  label: string;
  value: Json;
  set: (value: Json) => void;
  id?: string;
}): JSX.Element {
  const { param, label, value } = props;
  const choosing = useSignal(false);
  const input = useRef<HTMLInputElement>(null);
  const name = typeof value === "string" && value ? baseName(value) : value === null ? "None" : JSON.stringify(value);
  const items: (MenuItem | null)[] = [
    ...(param.choices ?? []).map((each) => ({ label: each, run: () => props.set(each) })),
    param.choices?.length ? null : undefined,
    { label: "Choose from the folders…", icon: "folder", run: () => (choosing.value = true) },
    { label: "Send a file…", icon: "upload", run: () => input.current?.click() },
    value !== null ? { label: "None", icon: "close", run: () => props.set(null) } : undefined,
  ].filter((each): each is MenuItem | null => each !== undefined);
  return (
    <div class="file">
      <MenuButton label={`${label}: ${name}`} text={name} icon={param.type === "lut" ? "sliders" : "image"} class="file-button" items={items} />
      <input
        ref={input}
        id={props.id}
        type="file"
        class="hidden"
        tabIndex={-1}
        aria-label={`${label}, send a file`}
        accept={ACCEPT[param.type]}
        onChange={async (event) => {
          const file = event.currentTarget.files?.[0];
          event.currentTarget.value = "";
          const path = file ? await upload(file) : null;
          if (path !== null) props.set(path);
        }}
      />
      {choosing.value ? (
        <FileDialog
          title={`Choose a file for ${label}`}
          kinds={param.type === "lut" ? ["lut"] : param.type === "picture" ? ["picture"] : null}
          onClose={() => (choosing.value = false)}
          onChoose={(path) => {
            choosing.value = false;
            props.set(path);
          }}
        />
      ) : null}
    </div>
  );
}
