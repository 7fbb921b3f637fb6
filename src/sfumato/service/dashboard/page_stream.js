// One stream: what left, what can be inferred, what leaked, what may still leak.
import { get, streamPath } from "./api.js";
import { Chart, FLAT, axis, still } from "./charts.js";
import { charges, count, down, fill, h, listing, nats, near, percent, plural, say, table, tile, up, value } from "./dom.js";
import { HeatStrip } from "./heat.js";

const LAST = 400;
const WHOLE = [1, 2, 5].flatMap((part) => [0, 1, 2, 3, 4, 5, 6].map((power) => part * 10 ** power)).sort((one, two) => one - two);

export function streamPage(refresh) {
  let chosen = null;
  const body = h("div");
  let parts = null;
  let after = "";
  return {
    title: "Stream",
    mount(root, [stream]) {
      chosen = stream || null;
      const input = h("input", { id: "stream-name", value: chosen || "", autocomplete: "off", required: true });
      const form = h("form", { class: "row", role: "search", "aria-label": "Choose a stream", onsubmit: (event) => {
        event.preventDefault();
        location.hash = `#/stream/${encodeURIComponent(input.value)}`;
      } }, h("label", {}, "Name of the stream", input), h("button", { class: "main", type: "submit" }, "Show"));
      root.append(h("h1", {}, chosen ? `Stream ${chosen}` : "Streams"),
        h("p", { class: "lead" }, chosen ? "What left, what anybody can infer from it, and what it leaked: all from public things." : "Choose a stream by its name, or from the list."),
        h("div", { class: "grid" }, h("section", { class: "card", "aria-label": "Choose a stream" }, form)), body);
      body.style.marginTop = "1rem";
      if (chosen) { parts = panels(); body.append(parts.whole); }
    },
    async refresh(signal) {
      if (chosen) await parts.refresh(chosen, signal);
      else {
        const found = await get("streams", { after, limit: 50 }, signal);
        fill(body, h("section", { class: "card", "aria-label": "Streams" }, listed(found),
          h("div", { class: "pager" },
            after ? h("button", { type: "button", onclick: () => { after = ""; refresh(); } }, "From the beginning") : null,
            found.next ? h("button", { type: "button", onclick: () => { after = found.next; refresh(); } }, "Further streams") : null)));
      }
    },
    close() { if (parts) parts.close(); },
  };
}

const listed = (found) => table(listing(found, "Streams by name"), [
  { name: "Stream", of: (row) => h("a", { href: `#/stream/${encodeURIComponent(row.stream)}` }, row.stream) },
  { name: "Answers", number: true, of: (row) => count(row.answers) }, ...charges(found, found.streams),
], found.streams, "No stream has released anything yet. Send an event, and it appears here.");

function panels() {
  const tiles = h("dl", { class: "tiles" });
  const proof = h("section", { class: "card", "aria-labelledby": "proof-title" });
  const values = new Chart({ title: "Released and recovered values", words: "Dots are what left; the line is the best guess given everything that left, which costs no privacy.", width: "", height: 260, options: () => ({}) });
  const leak = new Chart({ title: "Leakage over time", words: "What all outputs up to each moment leaked, rounded up.", options: () => ({}) });
  const window_ = new Chart({ title: "Charges of the budget's window", words: "What the steps were charged that still count when the next one is decided.", options: bars });
  const strip = new HeatStrip("Belief", "What somebody who knows the model and all outputs so far believes the value of each moment to be, right after it was answered.");
  let symbols = null;
  let job = null;
  const nothing = h("div");
  const shown = h("div", { class: "grid", hidden: true }, tiles, proof, values.figure, strip.figure, leak.figure, window_.figure);
  return {
    whole: h("div", {}, nothing, shown),
    async refresh(stream, signal) {
      const at = (what, query = {}) => get(streamPath(stream, what), query, signal);
      const budget = await at("budget");
      shown.hidden = budget.answers === 0;
      fill(nothing, budget.answers ? null : say("", `No answers: ${budget.remark}. The rule of this release: ${budget.rule}.`));
      if (!budget.answers) return;
      const [leakage, belief, recovered, certificate] = await Promise.all([
        at("leakage", { last: LAST }), at("belief", { last: LAST }), at("recovered", { last: LAST }), at("certificate")]);
      fill(tiles, figures(budget));
      strip.figure.hidden = budget.job !== "release";
      window_.figure.hidden = !budget.in_window.length;
      leak.figure.classList.toggle("half", budget.in_window.length > 0);
      const part = leakage.answers > leakage.points.length ? `: the last ${count(leakage.points.length)} of ${count(leakage.answers)} moments` : "";
      values.title.textContent = `${budget.job === "release" ? "Released and recovered values" : "Released values"}${part}`;
      leak.title.textContent = `Leakage over time${part}`;
      leak.figure.hidden = budget.promise !== null; // of a series all values leak together
      values.words.hidden = budget.job !== "release";
      fill(proof, ...proven(certificate));
      const same = JSON.stringify(leakage.symbols);
      if (symbols !== same || job !== leakage.job) { symbols = same; job = leakage.job; values.shape = valueShape(leakage); leak.shape = leakShape(leakage); }
      showValues(values, leakage, recovered);
      if (!budget.promise) showLeakage(leak, leakage, budget);
      if (budget.in_window.length) showWindow(window_, budget);
      strip.show(belief);
    },
    close() { values.close(); leak.close(); window_.close(); strip.close(); },
  };
}

const SPENT = { release: "Leaked under the model", temporal: "Told of the last moment" };

function figures(budget) {
  const unit = () => (budget.unit === "nats" ? nats() : budget.unit);
  const model = budget.model;
  const free = budget.model_free;
  const toCome = budget.steps_left === null ? "" : `, ${plural(budget.steps_left, "step")} to come`;
  const within = budget.steps_left === null ? "of this window's" : "of";
  const promise = budget.promise;
  if (promise) {
    return [tile("Answers", count(budget.answers), "", budget.rule),
      tile("Differential privacy", up(promise.epsilon), nats(), `of all values together, at ${promise.level}, whatever the model${promise.delta ? `; except with probability ${up(promise.delta)}` : ""}`),
      tile("Values to come", count(budget.steps_left), "", `of ${count(budget.steps)} that the noise is for`, budget.steps_left / budget.steps)];
  }
  return [
    tile("Answers", count(budget.answers), "", budget.rule),
    tile(SPENT[budget.job], up(model.spent), unit(), budget.job === "temporal" ? "it grows with what is released later" : `in this release so far${toCome}`),
    model.left === null ? null : tile("Left now", down(model.left), unit(), `${within} ${up(model.limit)}`, model.left / model.limit),
    model.next === null ? null : tile("The next step may leak", down(model.next), unit(), budget.exhausted ? "nothing: the budget is used up" : free.next === null ? "under the model" : `and ${down(free.next)} whatever the model`),
    budget.job === "realtime" ? null : tile("Leaked whatever the model", up(free.spent), unit(), free.left === null ? "in this release so far; it has no cap of its own" : `in this release so far; ${down(free.left)} left ${within} ${up(free.limit)}`, free.left === null ? null : free.left / free.limit, "free"),
    tile("May ever be told of one value", budget.one_value === null ? "no limit" : up(budget.one_value), budget.one_value === null ? "" : nats(), budget.one_value === null ? "it may grow with every step; the certificate says what was told so far" : budget.one_value_rule),
  ].filter(Boolean);
}

function proven(told) {
  const state = told.checked < told.answers && told.passed ? h("span", { class: "badge warn" }, `checked ${count(told.checked)} of ${count(told.answers)}`)
    : told.passed ? h("span", { class: "badge good" }, "✓ recomputed, and as charged") : h("span", { class: "badge bad" }, "✗ not what the rules do");
  const extra = [
    ["Largest of one step", told.worst_step], ["Largest of any window", told.worst_window],
    ["All steps, but for one chance in a million", told.composed === told.sip ? null : told.composed], ["Told about any one value", told.one_value]].filter(([, amount]) => amount !== null);
  return [h("h2", { id: "proof-title" }, "Certificate ", state),
    h("ul", {}, told.guarantees.map((line) => h("li", {}, line))),
    told.problems.map((line) => say("bad", line)), told.remarks.map((line) => say("warn", `${line[0].toUpperCase()}${line.slice(1)}.`)),
    extra.length ? h("details", {}, h("summary", {}, "More figures"), table("In nats, rounded up", [
      { name: "What", of: (row) => row[0] }, { name: "Amount", number: true, of: (row) => up(row[1], 6) }], extra)) : null,
    told.others.length ? besides(told) : null,
    told.unread.length ? say("warn", `Not counted, for they are not open: ${told.unread.join(", ")}.`) : null,
    told.head ? h("p", { class: "quiet" }, "Head of the ledger: ", h("code", {}, told.head)) : null].flat().filter(Boolean);
}

function besides(told) {
  return [h("h3", {}, "Other releases answered this stream, too"),
    table("Other releases of this stream, as they charged it, rounded up", [
      { name: "Release", of: (row) => row.release }, { name: "Answers", number: true, of: (row) => count(row.answers) },
      { name: "Under the guarantee", number: true, of: (row) => up(row.sip) }, { name: "Whatever the model", number: true, of: (row) => up(row.ldp) }, { name: "Unit", of: (row) => row.unit }], told.others),
    say("warn", told.together ? `These ${count(told.together.releases)} together leaked at most ${up(told.together.sip)} nats under the model, and at most ${up(told.together.ldp)} whatever the model.` : "No bound on what they leaked together is known.")];
}

// ---- charts

// One moment alone has no width of its own, and no line.
const along = { time: false, range: (plot, low, high) => (plot.data && plot.data[0].length === 1 ? [plot.data[0][0] - 1, plot.data[0][0] + 1] : [low, high]) };
const moments = (c) => axis(c, "moment", { ...FLAT, incrs: WHOLE });
function valueShape(leakage) {
  const names = leakage.symbols;
  const categories = names.length > 0;
  return (c) => ({
    cursor: still,
    scales: { x: along, y: categories ? { range: [-0.5, names.length - 0.5] } : {} },
    axes: [moments(c), categories ? axis(c, "", { size: 78, splits: () => names.map((_, place) => place).filter((place) => place % Math.ceil(names.length / 12) === 0), values: (_, ticks) => ticks.map((tick) => short(names[tick])) }) : axis(c, "value")],
    series: [{ label: "moment" },
      { label: "released", stroke: c.colour("model"), width: categories ? 0 : 1.5, paths: categories ? () => null : undefined, points: { show: true, size: 6, fill: c.colour("model") }, value: (_, v) => named(names, v) },
      ...(leakage.job === "release" ? [{ label: "recovered", stroke: c.colour("free"), width: 2, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false }, value: (_, v) => named(names, v) }] : [])],
  });
}
const short = (name) => { const text = String(name); return text.length > 10 ? `${text.slice(0, 9)}…` : text; };
const named = (names, v) => (v === null || v === undefined ? "–" : names.length ? String(names[v]) : near(v, 6));

function showValues(chart, leakage, recovered) {
  const names = leakage.symbols;
  const first = (cell) => { const list = typeof cell === "string" && cell.startsWith("[") ? JSON.parse(cell) : null; return list ? list[0] : cell; };
  const place = (cell) => (cell === null ? null : names.length ? names.findIndex((name) => String(name) === String(cell)) : Number(first(cell)));
  const guesses = new Map(recovered.values.map((one) => [one.sequence, one]));
  const rows = leakage.points.map((point) => ({ ...point, known: guesses.get(point.sequence) })).reverse();
  const data = [leakage.points.map((point) => point.sequence), leakage.points.map((point) => place(point.released))];
  if (leakage.job === "release") data.push(leakage.points.map((point) => (guesses.has(point.sequence) ? place(guesses.get(point.sequence).guess) : null)));
  const last = rows[0];
  chart.show(data, `${plural(leakage.points.length, "moment")}; the last released ${value(last.released)}${last.known ? `, best guess ${value(last.known.guess)} at ${near(last.known.probability, 2)}` : ""}.`,
    table("Released and recovered values, latest first", [
      { name: "Moment", number: true, of: (row) => row.sequence }, { name: "Time", of: (row) => row.time }, { name: "Outcome", of: (row) => row.outcome },
      { name: "Released", of: (row) => value(row.released) }, ...(leakage.job === "release" ? [{ name: "Best guess", of: (row) => (row.known ? value(row.known.guess) : null) },
      { name: "Probability", number: true, of: (row) => (row.known ? near(row.known.probability, 3) : null) },
      { name: `In ${percent(recovered.cover)} one of`, wrap: true, of: (row) => (row.known ? row.known.credible.map(value).join(", ") : null) }] : [])], rows), chart.shape);
}

function leakShape(leakage) {
  const temporal = leakage.job === "temporal";
  const lines = temporal ? [["backward", "silence"], ["forward", "free"], ["in all", "model"]] : [["under the model", "model"], ["whatever the model", "free"]];
  return (c) => ({
    cursor: still, scales: { x: along, y: { range: (_, low, high) => [0, Math.max(1e-6, high * 1.08)] } },
    axes: [moments(c), axis(c, leakage.unit)],
    series: [{ label: "moment" }, ...lines.map(([label, name]) => ({ label, stroke: c.colour(name), width: 2, points: { show: (plot) => plot.data[0].length === 1, size: 8, fill: c.colour(name) }, value: (_, v) => up(v) }))],
  });
}

function showLeakage(chart, leakage, budget) {
  const points = leakage.points;
  const fields = leakage.job === "temporal" ? ["backward", "forward", "total"] : ["total_sip", "total_ldp"];
  const last = points.at(-1);
  const words = leakage.job === "temporal" ? `No moment leaks more than ${up(Math.max(...points.map((point) => point.total)))} of ${up(budget.model.limit)} nats.`
    : `After moment ${last.sequence}: ${up(last.total_sip)} ${leakage.unit} under the guarantee, ${up(last.total_ldp)} whatever the model.`;
  chart.words.textContent = leakage.job === "temporal" ? "What all releases together tell of each moment: through those up to it, those from it on, and all of them. It grows as others are released." : "What all outputs up to each moment leaked, rounded up.";
  chart.show([points.map((point) => point.sequence), ...fields.map((name) => points.map((point) => point[name]))], words,
    table("Leakage by moment, latest first", [
      { name: "Moment", number: true, of: (row) => row.sequence }, { name: "Charged", number: true, of: (row) => up(row.sip) },
      { name: "Whatever the model", number: true, of: (row) => up(row.ldp) }, { name: "Sum", number: true, of: (row) => up(row.total_sip) },
      { name: "Sum whatever the model", number: true, of: (row) => up(row.total_ldp) },
      ...(leakage.job === "temporal" ? ["backward", "forward", "total"].map((name) => ({ name, number: true, of: (row) => up(row[name]) })) : [])], [...points].reverse()), chart.shape);
}

function bars(c) {
  return {
    cursor: still, scales: { x: { time: false, range: (_, low, high) => [low - 0.6, high + 0.6] }, y: { range: (_, low, high) => [0, Math.max(1e-6, high * 1.15)] } },
    axes: [moments(c), axis(c, "nats")],
    series: [{ label: "moment" }, { label: "charged", stroke: c.colour("model"), fill: c.faint("model", 0.4), width: 1, paths: uPlot.paths.bars({ size: [0.7, 40], radius: 0.15 }), points: { show: false }, value: (_, v) => up(v) }],
  };
}

function showWindow(chart, budget) {
  const steps = budget.in_window;
  chart.show([steps.map((step) => step.sequence), steps.map((step) => step.sip)], `${plural(steps.length, "step")} still ${steps.length === 1 ? "counts" : "count"} in the window; ${down(budget.model.left)} nats are left.`,
    table("Charges that still count in the window", [
      { name: "Moment", number: true, of: (row) => row.sequence }, { name: "Under the model", number: true, of: (row) => up(row.sip) },
      { name: "Whatever the model", number: true, of: (row) => up(row.ldp) }], steps));
}
