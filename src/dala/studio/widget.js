// The widget of a chain in a notebook: a picture, and a control for every parameter.
// Python has the chain; this shows it and sends {card, param, value} or {time}.

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function hex(color) {
  const byte = (v) => Math.round(Math.min(Math.max(v, 0), 1) * 255).toString(16).padStart(2, "0");
  return "#" + color.slice(0, 3).map(byte).join("");
}

function fromHex(text, alpha) {
  const part = (at) => parseInt(text.slice(at, at + 2), 16) / 255;
  return [part(1), part(3), part(5), ...(alpha === undefined ? [] : [alpha])];
}

function control(param, send) {
  const label = param.name.replaceAll("_", " ");
  if (param.type === "bool") {
    const box = element("input", { type: "checkbox", checked: Boolean(param.value) });
    box.addEventListener("change", () => send(box.checked));
    return element("label", {}, name(label), box);
  }
  if (param.type === "choice") {
    const list = element("select");
    for (const choice of param.choices) list.append(element("option", { value: choice, textContent: choice }));
    list.value = param.value;
    list.addEventListener("change", () => send(list.value));
    return element("label", {}, name(label), list);
  }
  if (param.type === "color") {
    const now = Array.isArray(param.value) ? param.value : Array(param.size).fill(param.value ?? 0);
    const box = element("input", { type: "color", value: hex(now) });
    box.addEventListener("input", () => send(fromHex(box.value, param.size === 4 ? now[3] : undefined)));
    return element("label", {}, name(label), box);
  }
  const [low, high, step] = param.slider;
  const slider = element("input", { type: "range", min: low, max: high, step, value: param.value ?? low });
  const box = element("input", { type: "number", step: "any", value: param.value ?? "" });
  const change = (text) => {
    const value = param.type === "int" ? Math.round(Number(text)) : Number(text);
    if (text !== "" && Number.isFinite(value)) send(value);
  };
  slider.addEventListener("input", () => { box.value = slider.value; change(slider.value); });
  box.addEventListener("change", () => { slider.value = box.value; change(box.value); });
  slider.setAttribute("aria-label", label);
  box.setAttribute("aria-label", `${label}, number`);
  box.title = param.unit ?? "";
  return element("label", {}, name(label, param.unit), slider, box);
}

function name(label, unit) {
  return element("span", { textContent: label, title: unit ? `${label}, ${unit}` : label });
}

function render({ model, el }) {
  const picture = element("img", { alt: "the result of the chain" });
  let address = "";
  const show = () => {
    const data = model.get("picture");
    if (!data || !data.byteLength) return;
    const old = address;
    address = URL.createObjectURL(new Blob([data], { type: "image/jpeg" }));
    picture.src = address;
    if (old) URL.revokeObjectURL(old);
  };
  const error = element("div", { role: "alert", className: "error" });
  const fail = () => { error.textContent = model.get("error"); };
  const rows = element("div", { className: "controls" });
  model.get("cards").forEach((card, number) => {
    if (!card.params.length) {
      rows.append(element("div", { className: "plain", textContent: card.title }));
      return;
    }
    const group = element("fieldset", {}, element("legend", { textContent: card.title }));
    for (const param of card.params) {
      const row = element("div");
      row.append(control(param, (value) => model.send({ card: number, param: param.name, value })));
      group.append(row);
    }
    rows.append(group);
  });
  if (model.get("duration") > 0) {
    const time = element("input", {
      type: "range", min: 0, max: model.get("duration"), step: model.get("step") || "any", value: 0,
    });
    time.setAttribute("aria-label", "time");
    time.addEventListener("input", () => model.send({ time: Number(time.value) }));
    rows.prepend(element("label", {}, name("time", "seconds"), time));
  }
  model.on("change:picture", show);
  model.on("change:error", fail);
  el.append(element("div", { className: "dala-widget" }, element("div", { className: "view" }, picture, error), rows));
  show();
  fail();
  return () => {
    model.off("change:picture", show);
    model.off("change:error", fail);
    if (address) URL.revokeObjectURL(address);
  };
}

export default { render };
