// Charts by uPlot, in the colours of the page, each with a table that says the same.
/* global uPlot */
import { fill, h } from "./dom.js";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const faint = (name, share) => `color-mix(in srgb, ${colour(name)} ${100 * share}%, transparent)`;
const alive = new Set();

window.addEventListener("sfumato-theme", () => alive.forEach((chart) => chart.rebuild()));

/** A figure: title, words, chart, and a table behind a disclosure. */
export class Chart {
  constructor({ title, words, width = "half", height = 240, options }) {
    this.options = options;
    this.height = height;
    this.place = h("div", { class: "chart", role: "img" });
    this.table = h("div");
    this.words = h("p", {}, words);
    this.title = h("h2", {}, title);
    this.note = h("div");
    this.figure = h("figure", { class: `card ${width}` },
      h("figcaption", {}, this.title, this.words), this.place, this.note,
      h("details", {}, h("summary", {}, `${title} as a table`), this.table));
    this.plot = null;
    this.data = null;
    this.watcher = new ResizeObserver(() => this.resize());
    this.watcher.observe(this.place);
    alive.add(this);
  }

  /** Show data; `label` says in words what is seen, `rows` is the table. */
  show(data, label, rows, options = this.options) {
    const anew = options !== this.options || !this.plot || this.data.length !== data.length;
    this.options = options;
    this.data = data;
    this.place.setAttribute("aria-label", label);
    fill(this.table, rows);
    fill(this.note);
    this.place.hidden = false;
    if (anew) this.rebuild();
    else this.plot.setData(data);
  }

  empty(words) {
    this.destroyPlot();
    this.place.hidden = true;
    fill(this.note, h("p", { class: "empty" }, words));
    fill(this.table, h("p", { class: "empty" }, words));
  }

  rebuild() {
    if (!this.data) return;
    this.destroyPlot(false);
    const width = Math.max(200, this.place.clientWidth || 300);
    this.plot = new uPlot({ width, height: this.height, ...this.options(palette()) }, this.data, this.place);
    this.place.querySelectorAll(".u-legend").forEach((legend) => legend.setAttribute("aria-hidden", "true"));
  }

  resize() {
    const width = this.place.clientWidth;
    if (this.plot && width > 0 && Math.abs(width - this.plot.width) > 1) this.plot.setSize({ width, height: this.height });
  }

  destroyPlot(forget = true) {
    if (this.plot) this.plot.destroy();
    this.plot = null;
    if (forget) this.data = null;
  }

  close() {
    this.watcher.disconnect();
    this.destroyPlot();
    alive.delete(this);
  }
}

export function palette() {
  return { colour, faint, line: faint("silence", 0.22), quiet: colour("quiet") };
}

/** An axis in the colours of the page. */
export function axis(colours, label, more = {}) {
  return {
    label, stroke: colours.quiet, labelSize: 22, font: "12px system-ui", labelFont: "12px system-ui",
    grid: { stroke: colours.line, width: 1 }, ticks: { stroke: colours.line, width: 1 }, size: 52, ...more,
  };
}

/** What an axis along the bottom has beside that: it needs no room for wide numbers. */
export const FLAT = { size: 34, labelSize: 18, gap: 4, labelGap: 0 };

export const still = { drag: { setScale: false, x: false, y: false }, points: { size: 7 } };
