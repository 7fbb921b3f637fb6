// All streams of a release at one look.
import { get } from "./api.js";
import { Chart, FLAT, axis, still } from "./charts.js";
import { charges, count, fill, h, listing, near, plural, say, table, tile, up } from "./dom.js";

const bins = (left) => left.map((streams, place) => ({ range: `${10 * place}–${10 * place + 10} %`, streams }));

export function overviewPage() {
  const tiles = h("dl", { class: "tiles" });
  const lead = h("p", { class: "lead" }, "Counting streams…");
  const warning = h("div");
  const streams = h("div");
  const rate = new Chart({
    title: "Events a minute", words: "On this node, for the last hour. Repeated ones were answered before: nothing was drawn for them.", width: "two-thirds",
    options: (c) => ({
      cursor: still, scales: { x: { time: false }, y: { range: (_, low, high) => [0, Math.max(5, high * 1.1)] } },
      axes: [axis(c, "minutes ago", { ...FLAT, incrs: [5, 10, 15], values: (_, ticks) => ticks.map((tick) => String(-tick)) }), axis(c, "events")],
      series: [{ label: "minutes ago", value: (_, v) => (v === null ? "–" : String(-v)) },
        { label: "answered", stroke: c.colour("bound"), fill: c.faint("bound", 0.15), width: 2, points: { show: false } },
        { label: "repeated", stroke: c.colour("silence"), width: 1.5, dash: [4, 3], points: { show: false } },
        { label: "refused", stroke: c.colour("bad"), width: 2, points: { show: false } }],
    }),
  });
  const left = new Chart({
    title: "Budgets left", words: "How many streams have how much of their budget left.", width: "third",
    options: (c) => ({
      cursor: still, scales: { x: { time: false, range: [-0.6, 9.6] }, y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] } },
      axes: [axis(c, "left, in %", { ...FLAT, splits: () => [0, 2, 4, 6, 8], values: (_, ticks) => ticks.map((tick) => `${10 * tick}–${10 * tick + 10}`) }), axis(c, "streams")],
      series: [{ label: "left", value: (_, v) => (v === null ? "–" : `${10 * v} to ${10 * v + 10} %`) },
        { label: "streams", stroke: c.colour("model"), fill: c.faint("model", 0.35), width: 1, paths: uPlot.paths.bars({ size: [0.8, 60], radius: 0.15 }), points: { show: false } }],
    }),
  });
  const refused = h("section", { class: "card third", "aria-labelledby": "refused-title" });
  return {
    title: "Overview",
    all: true,
    mount(root) {
      root.append(h("h1", {}, "Overview"), lead, warning, h("div", { class: "grid" }, tiles, rate.figure, left.figure,
        h("section", { class: "card two-thirds", "aria-labelledby": "streams-title" }, h("h2", { id: "streams-title" }, "Streams"), streams), refused));
    },
    async refresh(signal) {
      const [all, some] = await Promise.all([get("overview", {}, signal), get("streams", { limit: 12 }, signal)]);
      fill(lead, `Release ${all.release} may leak ${all.rule}. `, all.complete ? "" : "Not all streams are counted yet.");
      const refusals = Object.values(all.refused).reduce((sum, one) => sum + one, 0);
      const full = all.left.slice(5).reduce((sum, one) => sum + one, 0);
      fill(tiles,
        tile("Streams", count(all.streams), "", all.complete ? `${count(all.entries)} answers in the ledger` : "still counting"),
        all.left.length ? tile("Over half of the budget left", count(full), full === 1 ? "stream" : "streams", null, all.streams ? full / all.streams : 0) : null,
        all.left.length ? tile("Budget used up", count(all.exhausted), all.exhausted === 1 ? "stream" : "streams", all.exhausted ? "nothing more may leave of them" : "none: all may go on") : null,
        all.totals ? tile("Largest total of a stream", up(all.totals.largest), "nats", `no total limit: ${all.left.length ? "every window" : "every step"} may add to it`) : null,
        all.totals ? tile("Median total of a stream", up(all.totals.median), "nats", "under the model, so far") : null,
        tile("Answered now", near(all.per_second, 3), "events a second", "on this node, over the last minute or two"),
        tile("Refused", count(refusals), refusals === 1 ? "event" : "events", "on this node since it started"));
      fill(warning, all.totals && all.totals.warning ? say("warn", all.totals.warning) : null);
      left.figure.hidden = !all.left.length;
      rate.figure.classList.toggle("two-thirds", all.left.length > 0);
      const minutes = all.minutes.slice(0, -1); // the last one is not over yet
      const columns = ["answered", "repeated", "refused"].map((name) => minutes.map((minute) => minute[name]));
      const sum = columns[0].reduce((total, one) => total + one, 0);
      rate.show([minutes.map((minute) => -minute.ago), ...columns], `${plural(sum, "event")} answered in the last hour.`,
        table("Events by minute, latest first", [
          { name: "Minutes ago", number: true, of: (row) => row.ago }, { name: "Answered", number: true, of: (row) => count(row.answered) },
          { name: "Repeated", number: true, of: (row) => count(row.repeated) }, { name: "Refused", number: true, of: (row) => count(row.refused) }], [...minutes].reverse()));
      if (all.left.length) left.show([all.left.map((_, place) => place), all.left], `Streams by budget left: ${bins(all.left).map((bin) => `${bin.range}: ${bin.streams}`).join(", ")}.`,
        table("Streams by what is left of their budget", [{ name: "Left", of: (bin) => bin.range }, { name: "Streams", number: true, of: (bin) => count(bin.streams) }], bins(all.left)));
      fill(streams, table(listing(some, "The first streams by name"), [
        { name: "Stream", of: (row) => h("a", { href: `#/stream/${encodeURIComponent(row.stream)}` }, row.stream) },
        { name: "Answers", number: true, of: (row) => count(row.answers) }, ...charges(some, some.streams)], some.streams, "No stream has released anything yet."),
      some.next ? h("p", {}, h("a", { href: "#/stream" }, "All streams")) : null);
      fill(refused, h("h2", { id: "refused-title" }, "Refusals"), table("Refused events by reason", [
        { name: "Reason", wrap: true, of: (row) => REASONS[row[0]] || row[0] }, { name: "Events", number: true, of: (row) => count(row[1]) }],
      Object.entries(all.refused), "Nothing was refused on this node since it started."));
    },
    close() { rate.close(); left.close(); },
  };
}

const REASONS = {
  value: "the value is none that the release knows", budget: "the budget leaves nothing",
  order: "earlier than the last event of its stream", closed: "the release is closed", unstored: "the ledger did not take the answer; asking again is safe",
};
