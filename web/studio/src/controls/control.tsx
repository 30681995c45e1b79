// The control of a parameter, by its declared type.
import type { JSX } from "preact";
import { useId } from "preact/hooks";
import type { Json, Param } from "../types";
import { Icon } from "../ui/icons";
import { Switch } from "../ui/parts";
import { plain } from "../ui/words";
import { ColorControl } from "./color";
import { CurveControl } from "./curve";
import { useEdited } from "./edited";
import { FileControl } from "./file";
import { NumberBox, NumberControl, NumbersControl } from "./number";

interface Props {
  param: Param;
  value: Json | undefined;
  set: (value: Json) => void;
  reset?: () => void;
  /** Colors as texts, as scene files have them. */
  textual?: boolean;
  /** What stands after the label, such as the key-frame button. */
  extra?: JSX.Element | null;
}

export function title(name: string): string {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function Control(props: Props): JSX.Element {
  const { param } = props;
  const id = useId();
  const value = props.value === undefined ? (param.default ?? null) : props.value;
  const changed = props.value !== undefined && !same(props.value, param.default ?? null);
  const label = param.label ?? title(param.name);
  const wide = ["curve", "text", "any"].includes(param.type);
  return (
    <div class={wide ? "control wide" : "control"} data-testid={`control-${param.name}`} data-changed={changed}>
      <div class="control-head">
        <label for={id} title={plain(param.doc ?? "")}>
          {label}
        </label>
        {param.unit ? <span class="unit">{param.unit}</span> : null}
        {props.extra}
        {props.reset ? (
          <button
            type="button"
            class="icon-button tiny reset"
            aria-label={`Reset ${label}`}
            title={`Reset to ${param.default === null || param.default === undefined ? "automatic" : JSON.stringify(param.default)}`}
            disabled={!changed}
            onClick={props.reset}
          >
            <Icon name="reset" size={13} />
          </button>
        ) : null}
      </div>
      <Body {...props} value={value} label={label} id={id} />
    </div>
  );
}

function same(a: Json, b: Json): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function Body(props: Props & { value: Json; label: string; id: string }): JSX.Element {
  const { param, value, set, label, id } = props;
  switch (param.type) {
    case "number":
    case "int":
      return <NumberControl param={param} label={label} id={id} value={typeof value === "number" ? value : null} set={set} />;
    case "bool":
      return <Switch label={label} on={value === true} onChange={set} />;
    case "choice":
      return (
        <span class="select">
          <select
            id={id}
            aria-label={label}
            value={value === null ? "" : String(value)}
            onChange={(event) => set(event.currentTarget.value === "" ? null : event.currentTarget.value)}
          >
            {param.default === null || param.default === undefined ? <option value="">automatic</option> : null}
            {(param.choices ?? []).map((choice) => (
              <option key={choice} value={choice}>
                {choice.replaceAll("_", " ")}
              </option>
            ))}
          </select>
          <Icon name="chevron" size={14} />
        </span>
      );
    case "numbers":
      return <NumbersControl param={param} label={label} value={value as number | number[] | null} set={set} />;
    case "color":
      return <ColorControl param={param} label={label} id={id} value={value} set={set} textual={props.textual === true} />;
    case "point":
      return Array.isArray(value) || value === null ? (
        <NumbersControl param={{ ...param, size: 2 }} label={label} value={value as number[] | null} set={set} names={["X", "Y"]} />
      ) : (
        <TextBox {...{ label, id }} value={String(value)} set={set} />
      );
    case "size":
      return <SizeControl label={label} value={value as (number | null)[] | null} set={set} />;
    case "curve":
      return <CurveControl label={param.name} value={value as [number, number][] | null} set={set as never} tint={param.name} />;
    case "lut":
    case "picture":
    case "map":
    case "path":
      return <FileControl param={param} label={label} id={id} value={value} set={set} />;
    case "text":
      return <TextArea {...{ label, id }} value={value === null ? "" : String(value)} set={set} />;
    default:
      return <JsonBox {...{ label, id }} value={value} set={set} />;
  }
}

function TextBox(props: { label: string; id: string; value: string; set: (value: Json) => void }): JSX.Element {
  return (
    <input
      id={props.id}
      type="text"
      class="box text"
      aria-label={props.label}
      value={props.value}
      onChange={(event) => props.set(event.currentTarget.value)}
    />
  );
}

function TextArea(props: { label: string; id: string; value: string; set: (value: Json) => void }): JSX.Element {
  const [shown, edit] = useEdited(props.value, props.set);
  return (
    <textarea
      id={props.id}
      class="box area"
      aria-label={props.label}
      rows={Math.min(4, shown.split("\n").length)}
      value={shown}
      onInput={(event) => edit(event.currentTarget.value)}
      onKeyDown={(event) => event.stopPropagation()}
    />
  );
}

/** Width and height; an empty one keeps the aspect. */
function SizeControl(props: {
  label: string;
  value: (number | null)[] | number | null;
  set: (value: Json) => void;
}): JSX.Element {
  const pair = Array.isArray(props.value) ? props.value : [props.value, props.value];
  const box = (index: 0 | 1, name: string) => (
    <label class="boxed">
      <span aria-hidden="true">{name}</span>
      <NumberBox
        label={`${props.label} ${name}`}
        value={pair[index] ?? null}
        low={1}
        step={1}
        whole={true}
        empty={true}
        set={(next) => {
          const values: (number | null)[] = [pair[0] ?? null, pair[1] ?? null];
          values[index] = next;
          props.set(values[0] === null && values[1] === null ? null : values);
        }}
      />
    </label>
  );
  return (
    <div class="boxes">
      {box(0, "W")}
      {box(1, "H")}
    </div>
  );
}

function JsonBox(props: { label: string; id: string; value: Json; set: (value: Json) => void }): JSX.Element {
  const text = props.value === null ? "" : JSON.stringify(props.value);
  return (
    <textarea
      id={props.id}
      class="box area mono"
      aria-label={`${props.label}, JSON`}
      rows={1}
      spellcheck={false}
      placeholder="automatic"
      value={text}
      onKeyDown={(event) => event.stopPropagation()}
      onChange={(event) => {
        const own = event.currentTarget;
        own.setCustomValidity("");
        if (own.value.trim() === "") return props.set(null);
        try {
          props.set(JSON.parse(own.value));
        } catch {
          own.setCustomValidity("This is not JSON.");
          own.reportValidity();
        }
      }}
    />
  );
}
