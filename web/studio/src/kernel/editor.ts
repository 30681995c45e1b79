// The editor of kernels: CodeMirror in a shadow root, whose styles are constructed sheets, so that a
// strict Content-Security-Policy holds without nonces.
import {
  autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, snippetCompletion,
  type Completion, type CompletionContext, type CompletionResult,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import {
  HighlightStyle, StreamLanguage, bracketMatching, indentOnInput, indentUnit, syntaxHighlighting,
  type StreamParser,
} from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic as Mark } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, Prec, type Extension, type Text } from "@codemirror/state";
import {
  EditorView, drawSelection, dropCursor, highlightActiveLine, highlightActiveLineGutter,
  highlightSpecialChars, hoverTooltip, keymap, lineNumbers, tooltips, type Tooltip,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { Diagnostic, Word } from "../types";
import { plain } from "../ui/words";

const look = EditorView.theme({
  "&": { height: "100%", color: "var(--text)", backgroundColor: "transparent", fontSize: "13px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6", overflow: "auto" },
  ".cm-content": { caretColor: "var(--accent)", padding: "10px 0" },
  "&.cm-focused": { outline: "none" },
  ".cm-cursor": { borderLeftColor: "var(--accent)", borderLeftWidth: "2px" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--selection)",
  },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--faint)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--hover)" },
  ".cm-activeLineGutter": { color: "var(--text)" },
  ".cm-matchingBracket": { backgroundColor: "var(--selection) !important", outline: "none" },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)",
    borderRadius: "8px", boxShadow: "var(--shadow)", overflow: "hidden", fontSize: "13px",
  },
  ".cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "15em" },
  ".cm-tooltip-autocomplete > ul > li": { padding: "3px 10px !important" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": {
    backgroundColor: "var(--accent) !important", color: "var(--on-accent) !important",
  },
  ".cm-completionInfo": { padding: "10px 12px", maxWidth: "360px", whiteSpace: "pre-wrap" },
  ".cm-completionIcon": { opacity: "0.7", paddingRight: "1em" },
  ".cm-completionDetail": { color: "inherit", opacity: "0.65", fontStyle: "normal" },
  ".word": { padding: "8px 12px", maxWidth: "420px" },
  ".word code": { fontFamily: "var(--mono)", color: "var(--accent-text)", display: "block" },
  ".word p": { margin: "6px 0 0", whiteSpace: "pre-wrap", color: "var(--muted)" },
  ".cm-diagnostic": { padding: "6px 12px", borderLeft: "3px solid var(--bad)", maxWidth: "520px", whiteSpace: "pre-wrap" },
  ".cm-lintRange-error": {
    backgroundImage: "none", textDecoration: "underline wavy var(--bad) 1.5px", textUnderlineOffset: "3px",
  },
  ".cm-panels": { backgroundColor: "var(--panel)", color: "var(--text)" },
  ".cm-panels input, .cm-panels button": { font: "inherit" },
});

const colors = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword], color: "var(--code-keyword)" },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName)], color: "var(--code-function)" },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.function(tags.variableName))], color: "var(--code-function)", fontWeight: "600" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: [tags.string, tags.docString], color: "var(--code-string)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--faint)", fontStyle: "italic" },
  { tag: [tags.typeName, tags.className, tags.meta], color: "var(--code-type)" },
  { tag: tags.propertyName, color: "var(--code-property)" },
  { tag: tags.operator, color: "var(--muted)" },
]);

/** Enough of WGSL and of LLVM's text to tell its parts apart. */
function parser(keywords: string, types: RegExp, comment: string): StreamParser<null> {
  const known = new Set(keywords.split(" "));
  return {
    token(stream) {
      if (stream.match(comment)) {
        stream.skipToEnd();
        return "comment";
      }
      if (stream.match(/^"[^"]*"/)) return "string";
      if (stream.match(/^0x[0-9a-fA-F]+|^\d+(\.\d+)?([eE][-+]?\d+)?[fiuh]?/)) return "number";
      if (stream.match(/^@\w+/)) return "meta";
      if (stream.match(/^%[\w.$-]+/)) return "propertyName";
      if (stream.match(types)) return "typeName";
      if (stream.match(/^[A-Za-z_][\w.]*/)) return known.has(stream.current()) ? "keyword" : null;
      stream.next();
      return null;
    },
  };
}

const LANGUAGES: { [name: string]: () => Extension } = {
  python: () => python(),
  wgsl: () =>
    StreamLanguage.define(
      parser(
        "fn let var const struct return if else for while loop break continue switch case default override",
        /^(vec[234]|mat[234]x[234]|array|atomic|bool|ptr|[fiu](16|32))\b/, "//",
      ),
    ),
  llvm: () =>
    StreamLanguage.define(
      parser(
        "define declare ret br label phi call load store getelementptr icmp fcmp select fadd fsub fmul fdiv add sub mul sdiv srem and or xor shl lshr ashr zext sext trunc fptosi fptoui sitofp uitofp bitcast inttoptr ptrtoint alloca switch unreachable fast nsw nuw inbounds align to private constant global attributes target datalayout triple",
        /^(void|float|double|half|ptr|i\d+|<\d+ x)\b/, ";",
      ),
    ),
};

function wordAt(text: Text, at: number): { from: number; to: number; word: string } | null {
  const line = text.lineAt(at);
  let [from, to] = [at - line.from, at - line.from];
  while (from > 0 && /[\w.]/.test(line.text[from - 1])) from--;
  while (to < line.text.length && /\w/.test(line.text[to])) to++;
  return from < to ? { from: line.from + from, to: line.from + to, word: line.text.slice(from, to) } : null;
}

/** Quotes are not closed: those of a documentation string come in threes, and get in the way. */
const onlyBrackets = Prec.highest(
  EditorState.languageData.of(() => [{ closeBrackets: { brackets: ["(", "[", "{"] } }]),
);

/** Replace a selection without the browser's own editing: it keeps the look of what was there by
 * inline styles, which the Content-Security-Policy refuses. */
const replaceSelection = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { main } = view.state.selection;
    const { data } = event;
    if (event.inputType !== "insertText" || main.empty || !data || view.composing) return false;
    event.preventDefault();
    const insert = () =>
      view.state.update(view.state.replaceSelection(data), { userEvent: "input.type", scrollIntoView: true });
    const handlers = view.state.facet(EditorView.inputHandler);
    if (!handlers.some((handler) => handler(view, main.from, main.to, data, insert))) view.dispatch(insert());
    return true;
  },
});

export interface EditorOptions {
  language: "python" | "wgsl" | "llvm";
  text: string;
  label: string;
  words: Word[];
  readOnly?: boolean;
  onChange?: (text: string) => void;
}

export class CodeEditor {
  readonly view: EditorView;

  constructor(host: HTMLElement, options: EditorOptions) {
    const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
    const frame = document.createElement("div");
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(":host{display:block;min-height:0}.frame{height:100%}");
    root.adoptedStyleSheets = [sheet];
    frame.className = "frame";
    root.replaceChildren(frame);
    const extensions: Extension[] = [
      look,
      syntaxHighlighting(colors),
      LANGUAGES[options.language](),
      lineNumbers(),
      highlightSpecialChars(),
      drawSelection(),
      highlightSelectionMatches(),
      EditorView.contentAttributes.of({ "aria-label": options.label }),
      tooltips({ position: "absolute", parent: frame }),
    ];
    if (options.readOnly) {
      extensions.push(EditorState.readOnly.of(true), keymap.of([...defaultKeymap, ...searchKeymap]));
    } else {
      extensions.push(
        history(), dropCursor(), indentOnInput(), bracketMatching(), closeBrackets(), onlyBrackets, highlightActiveLine(),
        highlightActiveLineGutter(), indentUnit.of("    "), lintGutter(),
        autocompletion({ override: [completer(options.words)], icons: true }),
        hover(options.words),
        replaceSelection,
        keymap.of([
          ...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...completionKeymap,
          ...lintKeymap, indentWithTab,
        ]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) options.onChange?.(update.state.doc.toString());
        }),
      );
    }
    this.view = new EditorView({
      state: EditorState.create({ doc: options.text, extensions }),
      parent: frame,
      root,
    });
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  set text(text: string) {
    const old = this.text;
    if (text === old) return;
    const at = Math.min(this.view.state.selection.main.head, text.length);
    this.view.dispatch({ changes: { from: 0, to: old.length, insert: text }, selection: { anchor: at } });
  }

  /** Underline what the compiler said, at its place. */
  mark(diagnostics: Diagnostic[]): void {
    const { doc } = this.view.state;
    const place = (line: number, column: number) => {
      const at = doc.line(Math.min(Math.max(line, 1), doc.lines));
      return Math.min(at.from + Math.max(column - 1, 0), at.to);
    };
    const marks: Mark[] = diagnostics.map((each) => {
      const from = place(each.line, each.column);
      let to = place(each.end_line ?? each.line, each.end_column ?? each.column + 1);
      if (to <= from) to = wordAt(doc, from)?.to ?? Math.min(from + 1, doc.length);
      return { from: Math.min(from, to), to: Math.max(from, to), severity: "error", message: each.message };
    });
    this.view.dispatch(setDiagnostics(this.view.state, marks));
  }

  focus(): void {
    this.view.focus();
  }

  destroy(): void {
    this.view.destroy();
  }
}

const KINDS: { [kind: string]: string } = { function: "function", type: "type", keyword: "keyword", constant: "constant" };

function completer(words: Word[]) {
  const options: Completion[] = words.map((word) => ({
    label: word.name,
    type: KINDS[word.kind] ?? "variable",
    detail: word.signature === word.name ? undefined : word.signature.slice(word.name.length),
    info: word.doc ? plain(word.doc) : undefined,
  }));
  options.push(
    snippetCompletion("for ${i} in range(${count}):\n\t${}", { label: "for", type: "keyword", detail: " loop" }),
    snippetCompletion("Within[float, ${0.0}, ${1.0}] = ${0.5}", {
      label: "Within", type: "type", detail: "[type, low, high]", info: "A parameter with a range; it becomes a slider.",
    }),
  );
  return (context: CompletionContext): CompletionResult | null => {
    const word = context.matchBefore(/[A-Za-z_]\w*/);
    if (!word && !context.explicit) return null;
    if (word && context.state.sliceDoc(word.from - 1, word.from) === ".") {
      const members = ["r", "g", "b", "a", "rgb", "x", "y", "z", "w", "xy", "xyz"];
      return { from: word.from, options: members.map((label) => ({ label, type: "property" })) };
    }
    const seen = new Set(options.map((each) => each.label));
    const own: Completion[] = [];
    for (const match of context.state.doc.toString().matchAll(/[A-Za-z_]\w{1,}/g)) {
      if (!seen.has(match[0]) && match.index !== word?.from) {
        seen.add(match[0]);
        own.push({ label: match[0], type: "variable", boost: -1 });
      }
    }
    return { from: word ? word.from : context.pos, options: [...options, ...own], validFor: /^\w*$/ };
  };
}

function hover(words: Word[]): Extension {
  const known = new Map(words.map((word) => [word.name, word]));
  return hoverTooltip((view, at): Tooltip | null => {
    const found = wordAt(view.state.doc, at);
    const word = found && (known.get(found.word) ?? known.get(found.word.split(".").pop()!));
    if (!found || !word) return null;
    return {
      pos: found.from,
      end: found.to,
      above: true,
      create() {
        const dom = document.createElement("div");
        dom.className = "word";
        const signature = dom.appendChild(document.createElement("code"));
        signature.textContent = word.signature;
        if (word.doc) dom.appendChild(document.createElement("p")).textContent = plain(word.doc);
        return { dom };
      },
    };
  }, { hoverTime: 250 });
}
