// Models, policies and releases of the registry, and a hint whether streams still move as the model says.
import { get } from "./api.js";
import { count, fill, h, near, percent, plural, say, table, value } from "./dom.js";

export function modelsPage() {
  const releases = h("div");
  const models = h("div");
  const hint = h("div");
  return {
    title: "Models",
    mount(root) {
      root.append(h("h1", {}, "Models"), h("p", { class: "lead" }, "What adversaries are assumed to know, and the releases that rest on it. A release never changes: another rule is another release."),
        h("div", { class: "grid" },
          h("section", { class: "card", "aria-labelledby": "releases-title" }, h("h2", { id: "releases-title" }, "Releases"), releases),
          h("section", { class: "card", "aria-labelledby": "models-title" }, h("h2", { id: "models-title" }, "Models and policies"), models),
          h("section", { class: "card", "aria-labelledby": "drift-title" }, h("h2", { id: "drift-title" }, "Drift"), hint)));
    },
    async refresh(signal) {
      const partly = (problem) => { if (problem.status !== 403) throw problem; return { unavailable: "this key sees some streams only, and a hint looks at all of them" }; };
      const [catalogue, drift] = await Promise.all([get("catalogue", { release: null }, signal), get("drift", {}, signal).catch(partly)]);
      const named = (row) => [row.name, row.default ? h("span", { class: "badge good" }, "default") : ""];
      const standing = (row) => h("span", { class: `badge ${row.status === "ready" ? "" : "warn"}`, title: row.detail || null }, row.detail ? `${row.status}: ${row.detail}` : row.closed ? `closed since ${when(row.closed)}` : row.status);
      fill(releases, table("Releases, latest first", [
        { name: "Name", of: (row) => h("span", {}, named(row)[0], " ", named(row)[1]) }, { name: "Job", of: (row) => row.job }, { name: "Made of", wrap: true, of: (row) => row.uses.join(", ") || "–" },
        { name: "Since", of: (row) => when(row.created) }, { name: "Status", of: standing }], catalogue.rows.filter((row) => row.kind === "release").reverse(), "There is no release yet."));
      fill(models, table("Models and policies, latest first", [
        { name: "Name", of: (row) => row.name }, { name: "Kind", of: (row) => row.kind }, { name: "Version", number: true, of: (row) => row.version },
        { name: "Since", of: (row) => when(row.created) }, { name: "Fingerprint", of: (row) => h("code", {}, row.fingerprint.slice(0, 12)) }], catalogue.rows.filter((row) => row.kind !== "release").reverse(), "There is no model yet."));
      fill(hint, drift.unavailable ? h("p", { class: "empty" }, sentence(drift.unavailable)) : shown(drift));
    },
    every: () => 20000,
    close() {},
  };
}

const when = (text) => (text ? text.slice(0, 16).replace("T", " ") : null);
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;
const often = (rate) => (rate >= 0.001 ? percent(rate) : "fewer than 1 in 1,000");

function shown(drift) {
  const odd = drift.false_alarm < 0.05;
  const badge = drift.alarm ? ["warn", "drift"] : odd ? ["warn", "worth a look"] : ["good", "nothing unusual"];
  return [
    h("p", {}, h("span", { class: `badge ${badge[0]}` }, badge[1]), " ", sentence(drift.proof)),
    h("p", {}, "A hint, from the last outputs alone: ", drift.hint, "."),
    h("p", { class: "quiet" }, `Looked at ${plural(drift.outputs, "output")} of the ${plural(drift.streams, "stream")} answered last. All outputs together were ${near(Math.abs(drift.surprise))} standard deviations `,
      `${drift.surprise < 0 ? "less" : "more"} surprising than the model expects. If the model is right, a difference as large as the largest here is seen in ${often(drift.false_alarm)} of looks. `,
      "It is computed from released values alone, so noise hides slow changes, and it costs no privacy."),
    odd && !drift.alarm ? say("warn", "A hint is no proof: fit a model to fresh history and compare the two.") : null,
    drift.shares.length ? table("How often symbols left beside how often they were expected to, most surprising first", [
      { name: "Symbol", of: (row) => value(row.symbol) }, { name: "Left", number: true, of: (row) => count(row.observed) }, { name: "Expected", number: true, of: (row) => near(row.expected, 4) },
      { name: "Standard deviations", number: true, of: (row) => `${row.surprise > 0 ? "+" : ""}${near(row.surprise, 2)}` }], drift.shares) : null,
  ].filter(Boolean);
}
