// What a budget would buy: loss against leakage, with the bound below and silence above.
import { get } from "./api.js";
import { Chart, FLAT, axis, still } from "./charts.js";
import { fill, h, near, percent, say, table, up } from "./dom.js";

const STEPS = 60;

export function planningPage(refresh) {
  const lead = h("p", { class: "lead" }, "Asking for the model of this release…");
  const words = h("div", { class: "words", "aria-live": "polite" });
  const slider = h("input", { type: "range", id: "budget", min: 0, max: STEPS, value: STEPS / 2, "aria-describedby": "budget-words" });
  const shown = h("output", { for: "budget", id: "budget-words" });
  const ownWords = h("div", { class: "words" });
  const itself = h("section", { class: "card", "aria-labelledby": "own-title", hidden: true }, h("h2", { id: "own-title" }, "This release"), ownWords);
  const card = h("section", { class: "card", "aria-labelledby": "slider-title", hidden: true },
    h("h2", { id: "slider-title" }, "Try a budget, step by step"), h("label", { for: "budget" }, "Leakage of a step: ", shown), slider, words);
  const chart = new Chart({ title: "Loss against budget", words: "", width: "", height: 320, options: (c) => shape(c, () => [own, own === null ? null : epsilon()]) });
  let own = null;
  let asked = null;
  let known = null;
  let timer = null;
  const epsilon = () => Number((own * 2 ** (((slider.value - STEPS / 2) / STEPS) * 6)).toPrecision(2));
  const grid = () => [1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8].map((factor) => Number((own * factor).toPrecision(3)));
  function describe() {
    const now = epsilon();
    shown.textContent = `${now} nats`;
    slider.setAttribute("aria-valuetext", `${now} nats a step`);
    if (!known) return;
    const point = known.points.find((one) => one.epsilon === now);
    if (!point || point.status === "computing") { fill(words, h("p", { class: "quiet" }, "Computing…")); return; }
    if (point.status !== "ready") { fill(words, say("warn", point.status === "too slow" ? "The trials of this budget took too long and were given up." : "Nothing can be said of this budget for this model.")); return; }
    const saved = known.silence ? 1 - point.loss / known.silence : 0;
    fill(words, h("p", {}, ...lost(point.loss, known.unit), ", ", h("strong", {}, percent(saved)), ` less than with silence (${known.unit === "wrong" ? percent(known.silence) : near(known.silence)}).`),
      h("p", {}, point.floor === null ? "No bound is known for this model. " : `No release within this budget loses less than ${near(point.floor)}. `,
        point.best_guess === null ? "" : `A receiver who uses the model brings it to ${near(point.best_guess)}.`),
      h("p", { class: "quiet" }, `A step leaks ${up(point.charged)} nats on average, ${up(point.model_free)} whatever the model; one value is told at most ${point.one_value === null ? "without bound" : `${up(point.one_value)} nats`} in ${known.length} values.`));
  }
  // What is served is not always what the curve shows: both say which they are.
  function describeOwn() {
    const served = known.served || known.points.find((point) => point.epsilon === known.epsilon);
    const sure = served && served.status === "ready";
    const saved = sure && known.silence ? 1 - served.loss / known.silence : 0;
    fill(ownWords, sure ? h("p", {}, ...lost(served.loss, known.unit), ", ", h("strong", {}, percent(saved)), ` less than with the best constant; a step leaks ${up(served.charged)} nats on average.`)
      : h("p", { class: "quiet" }, !served ? "What it loses itself is not forecast." : served.status === "computing" ? "Being tried as it is served…" : "Its own trials took too long, or cannot be made."),
    known.remarks.map((line) => say("warn", `${line[0].toUpperCase()}${line.slice(1)}.`)),
    h("p", { class: "quiet" }, `${known.served_remark[0].toUpperCase()}${known.served_remark.slice(1)}. The curve below is step by step at its best, for any budget.`));
    itself.hidden = false;
  }
  slider.addEventListener("input", () => {
    describe();
    if (chart.plot) chart.plot.redraw(false);
    clearTimeout(timer);
    timer = setTimeout(() => { asked = epsilon(); refresh(); }, 250);
  });
  return {
    title: "Planning",
    every: () => (known && [known.served, ...known.points].some((point) => point && point.status === "computing") ? 700 : 15000),
    mount(root) { root.append(h("h1", {}, "Planning"), lead, h("div", { class: "grid" }, itself, card, chart.figure)); },
    async refresh(signal) {
      if (own === null) {
        const first = await get("plan", {}, signal);
        if (first.unavailable) { fill(lead, "There is no forecast for this release."); chart.empty(first.unavailable); known = { points: [] }; own = null; return; }
        own = first.epsilon;
        asked = epsilon();
        card.hidden = false;
      }
      const wanted = [...new Set([asked, ...grid(), own])].reverse(); // the last is tried first
      known = await get("plan", { epsilon: wanted.join(",") }, signal);
      const busy = known.points.filter((point) => point.status === "computing").length;
      fill(lead, `What the model of release ${known.release} expects: the release itself may leak up to ${up(known.epsilon)} ${known.epsilon === 1 ? "nat" : "nats"} a step. `, busy ? `${busy} of ${known.points.length} budgets are still being tried.` : "");
      chart.words.textContent = `Smaller is better. ${known.streams} streams of ${known.length} values, ${known.remark}.`;
      const ready = known.points.filter((point) => point.status === "ready");
      describe();
      describeOwn();
      if (!ready.length) { chart.empty("The first budgets are being tried…"); return; }
      const served = known.served && known.served.status === "ready" ? known.served : ready.find((point) => point.epsilon === known.epsilon);
      const of = (name) => ready.map((point) => point[name]);
      const mine = ready.map((point) => (served && point.epsilon === served.epsilon ? served.loss : null));
      chart.show([of("epsilon"), of("low"), of("high"), of("loss"), of("best_guess"), of("floor"), ready.map(() => known.silence), mine],
        `Expected loss falls from ${near(ready[0].loss)} at ${ready[0].epsilon} nats a step to ${near(ready.at(-1).loss)} at ${ready.at(-1).epsilon}; silence loses ${near(known.silence)}.`,
        table(`Loss of a value${known.unit ? `, in ${known.unit}` : ""}, by budget`, [
          { name: "Nats a step", number: true, of: (row) => row.epsilon }, { name: "Loss", number: true, of: (row) => near(row.loss, 4) },
          { name: "Interval", number: true, of: (row) => `${near(row.low, 3)} – ${near(row.high, 3)}` }, { name: "Best guess", number: true, of: (row) => near(row.best_guess, 4) },
          { name: "Bound", number: true, of: (row) => near(row.floor, 4) }, { name: "Charged", number: true, of: (row) => up(row.charged) },
          { name: "Whatever the model", number: true, of: (row) => up(row.model_free) }], ready));
    },
    close() { clearTimeout(timer); chart.close(); },
  };
}

// Losses of right or wrong are shares; others have a unit.
function lost(loss, unit) {
  if (unit === "wrong") return [h("strong", {}, percent(loss)), " of values are released wrongly"];
  return ["A value loses ", h("strong", {}, `${near(loss)} ${unit}`), " on average"];
}

// Upright lines at the release's own budget and at the one that is tried.
function marks(c, places) {
  return (plot) => {
    const [own, tried] = places();
    const pen = plot.ctx;
    pen.save();
    [[own, "this release", c.colour("model"), [2, 4]], [tried, "tried", c.colour("free"), []]].forEach(([place, words, colour, dash], line) => {
      if (!place || place < plot.scales.x.min || place > plot.scales.x.max || (line === 0 && place === tried)) return;
      const x = Math.round(plot.valToPos(place, "x", true));
      pen.strokeStyle = pen.fillStyle = colour;
      pen.setLineDash(dash.map((part) => part * devicePixelRatio));
      pen.lineWidth = devicePixelRatio;
      pen.beginPath();
      pen.moveTo(x, plot.bbox.top);
      pen.lineTo(x, plot.bbox.top + plot.bbox.height);
      pen.stroke();
      pen.font = `${11 * devicePixelRatio}px system-ui`;
      pen.textAlign = "left";
      pen.fillText(words, x + 4 * devicePixelRatio, plot.bbox.top + (12 + 14 * line) * devicePixelRatio);
    });
    pen.restore();
  };
}

function shape(c, places) {
  const thin = { width: 0, stroke: "transparent", points: { show: false } };
  const line = (label, name, more = {}) => ({ label, stroke: c.colour(name), width: 2, points: { show: true, size: 6, fill: c.colour(name) }, value: (_, v) => near(v), ...more });
  return {
    cursor: still, scales: { x: { time: false, distr: 3 }, y: { range: (_, low, high) => [0, high * 1.08] } },
    axes: [axis(c, "nats a step", { ...FLAT, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : near(tick, 2))) }), axis(c, "loss of a value")],
    hooks: { draw: [marks(c, places)] },
    bands: [{ series: [2, 1], fill: c.faint("model", 0.18) }],
    series: [{ label: "nats a step", value: (_, v) => near(v) }, { label: "from", ...thin, value: (_, v) => near(v) }, { label: "to", ...thin, value: (_, v) => near(v) },
      line("step by step", "model"), line("best guess", "free"), line("bound", "bound", { dash: [2, 3] }), line("silence", "silence", { dash: [8, 4], points: { show: false } }),
      { label: "this release", stroke: c.colour("bad"), width: 0, paths: () => null, points: { show: true, size: 12, fill: c.colour("bad") }, value: (_, v) => near(v) }],
  };
}
