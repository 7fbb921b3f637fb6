// The belief as a heat strip: one row a symbol, one column a moment, soft from moment to moment as paint is.
import { fill, h, near, plural, table } from "./dom.js";

const ROW = 22;
const alive = new Set();
window.addEventListener("sfumato-theme", () => alive.forEach((strip) => strip.paint()));

export class HeatStrip {
  constructor(title, words) {
    this.canvas = h("canvas", { role: "img" });
    this.names = h("ul", { "aria-hidden": "true" });
    this.axis = h("div", { class: "axis", "aria-hidden": "true" });
    this.table = h("div");
    this.note = h("div");
    this.strip = h("div", { class: "strip" }, this.names, this.canvas, this.axis);
    this.key = h("div", { class: "key" }, "surely not", h("span", { class: "ramp", "aria-hidden": "true" }), "certain");
    this.figure = h("figure", { class: "card" },
      h("figcaption", {}, h("h2", {}, title), h("p", {}, words)), this.strip, this.key, this.note,
      h("details", {}, h("summary", {}, `${title} as a table`), this.table));
    this.watcher = new ResizeObserver(() => this.paint());
    this.watcher.observe(this.canvas);
    this.shown = null;
    alive.add(this);
  }

  show(belief) {
    const none = belief.unavailable || (belief.steps.length ? "" : "Nothing was released yet.");
    this.shown = none ? null : belief;
    this.strip.hidden = this.key.hidden = Boolean(none);
    if (none) {
      fill(this.note, h("p", { class: "empty" }, `${none[0].toUpperCase()}${none.slice(1)}`));
      fill(this.table, h("p", { class: "empty" }, none));
      return;
    }
    const more = belief.others ? `${plural(belief.others, "symbol")} hardly believed in ${belief.others === 1 ? "is" : "are"} not shown. ` : "";
    const mean = belief.width > 1 ? `Each column is the mean of ${plural(belief.width, "moment")}. ` : "";
    const behind = belief.followed < belief.answers ? `Followed ${belief.followed} of ${belief.answers} moments so far. ` : "";
    fill(this.note, more || mean || behind ? h("p", { class: "quiet" }, more, mean, behind) : null);
    fill(this.names, belief.symbols.map((symbol) => h("li", { title: symbol }, String(symbol))));
    fill(this.axis, h("span", {}, `moment ${belief.steps[0]}`), h("span", {}, `moment ${belief.steps.at(-1)}`));
    this.canvas.setAttribute("aria-label", describe(belief));
    const rows = belief.steps.map((step, place) => ({ step, best: best(belief, place) })).reverse();
    fill(this.table, table("Most believed symbol after each output, latest first", [
      { name: "Moment", number: true, of: (row) => row.step },
      { name: "Most believed", of: (row) => String(belief.symbols[row.best.place]) },
      { name: "Belief", number: true, of: (row) => near(row.best.chance, 3) },
    ], rows));
    this.paint();
  }

  paint() {
    const belief = this.shown;
    const width = this.canvas.clientWidth;
    if (!belief || !width) return;
    const rows = belief.symbols.length;
    const tall = Math.max(8, Math.min(ROW, Math.floor(420 / rows)));
    const sharp = Math.min(2, window.devicePixelRatio || 1);
    this.canvas.style.height = `${rows * tall}px`;
    this.names.style.gridTemplateRows = `repeat(${rows}, ${tall}px)`;
    this.canvas.width = Math.round(width * sharp);
    this.canvas.height = Math.round(rows * tall * sharp);
    const pen = this.canvas.getContext("2d");
    const heat = getComputedStyle(document.documentElement).getPropertyValue("--heat").split(",").map(Number);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.imageSmoothingEnabled = true;
    const columns = belief.steps.length;
    const line = new OffscreenCanvas(columns, 1);
    const small = line.getContext("2d");
    // Row by row, so that moments melt into each other and symbols do not.
    for (let row = 0; row < rows; row += 1) {
      const pixels = small.createImageData(columns, 1);
      for (let column = 0; column < columns; column += 1) {
        pixels.data.set([...heat, Math.round(255 * Math.sqrt(belief.probabilities[column][row] / 10000))], 4 * column);
      }
      small.putImageData(pixels, 0, 0);
      pen.drawImage(line, 0, 0, columns, 1, 0, Math.round(row * tall * sharp), this.canvas.width, Math.ceil((tall - 1) * sharp));
    }
  }

  close() {
    this.watcher.disconnect();
    alive.delete(this);
  }
}

function best(belief, column) {
  const chances = belief.probabilities[column];
  const place = chances.indexOf(Math.max(...chances));
  return { place, chance: chances[place] / 10000 };
}

function describe(belief) {
  const last = best(belief, belief.steps.length - 1);
  return `Belief after each of ${plural(belief.steps.length, "column")}; at the end ${belief.symbols[last.place]} is believed most, at ${near(last.chance, 2)}.`;
}
