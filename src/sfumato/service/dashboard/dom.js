// Small helpers: elements, tables, numbers as people read them. Text is always set as text, never as markup.

export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export const fill = (place, ...children) => place.replaceChildren(...children.flat().filter(Boolean));

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
export const count = (value) => grouped.format(value);
export const plural = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

// A bound that is shown is still a bound: what leaked is rounded up, what is left is rounded down.
function toward(value, digits, round) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const scale = 10 ** Math.min(12, Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value)))));
  const near = Math.round(value * scale) / scale;
  const shown = Math.abs(near - value) <= 1e-12 * Math.abs(value) ? near : round(value * scale) / scale;
  return String(shown);
}
export const up = (value, digits = 4) => toward(value, digits, Math.ceil);
export const down = (value, digits = 4) => toward(value, digits, Math.floor);
export const near = (value, digits = 3) => toward(value, digits, Math.round);
export const percent = (value) => `${near(100 * value, 3)} %`;

export const nats = () => h("abbr", { title: "natural units of leakage: see the note at the end of the page" }, "nats");

export function table(caption, columns, rows, empty = "Nothing here yet.") {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  const head = columns.map((column) => h("th", { scope: "col", class: column.number ? "number" : null }, column.name));
  const body = rows.map((row) => h("tr", {}, columns.map((column) => {
    const cell = column.of(row);
    return h("td", { class: column.number ? "number" : column.wrap ? "wrap" : null }, cell === null || cell === undefined ? "–" : cell);
  })));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, head)), h("tbody", {}, body)));
}

// What was charged, as columns; a series has its promise instead, and a temporal sum holds whatever the matrices.
export function charges(found, rows, model = "Under the model", free = "Whatever the model") {
  if (found.promise) return [];
  return [["sip", model], ["ldp", free]].filter(([name]) => rows.some((row) => row[name] !== null))
    .map(([name, words]) => ({ name: words, number: true, of: (row) => up(row[name]) }));
}
export const promised = (promise) => `${up(promise.epsilon)} nats of differential privacy at ${promise.level}${promise.delta ? `, except with probability ${up(promise.delta)}` : ""}, whatever the model`;
export const listing = (found, words) => (found.promise ? `${words}; each has ${promised(found.promise)}` : `${words}, and what was charged to them in nats`);

export function tile(name, figure, unit, note, share, kind = "") {
  return h("div", { class: "tile" }, h("dt", {}, name),
    h("dd", {}, h("div", { class: "figure" }, figure, unit ? h("small", {}, " ", unit) : null),
      share === undefined || share === null ? null : bar(share, kind, name),
      note ? h("div", { class: "note" }, note) : null));
}

export function bar(share, kind, name) {
  const inner = h("span");
  inner.style.width = `${Math.max(0, Math.min(100, 100 * share))}%`;
  return h("div", { class: `share ${kind}`, role: "img", "aria-label": `${name}: ${percent(Math.max(0, Math.min(1, share)))}` }, inner);
}

export const say = (kind, ...words) => h("div", { class: `say ${kind}`, role: kind === "bad" ? "alert" : "status" }, ...words);
export const value = (cell) => (cell === null || cell === undefined ? "–" : typeof cell === "number" ? near(cell, 6) : String(cell));
