// Search of the ledger, and its head to be written down elsewhere.
import { get } from "./api.js";
import { charges, count, fill, h, plural, promised, say, table, value } from "./dom.js";

const FIELDS = [
  ["stream", "Stream"], ["event", "Event id (of the stream)"], ["since", "Measured from (time)"], ["until", "Measured until (time)"], ["first", "From row", "number"], ["last", "To row", "number"]];

export function ledgerPage(refresh) {
  let query = {};
  let pages = [null];
  const head = h("code", { id: "head" }, "…");
  const copied = h("span", { role: "status", class: "quiet" });
  const copy = h("button", { type: "button", onclick: () => copyHead() }, "Copy");
  const found = h("div");
  async function copyHead() {
    try {
      await navigator.clipboard.writeText(head.textContent);
      copied.textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(head);
      copied.textContent = "Selected: copy it with your keyboard.";
    }
  }
  const inputs = Object.fromEntries(FIELDS.map(([name, , type]) => [name, h("input", { name, type: type || "text", min: type ? 1 : null, autocomplete: "off" })]));
  const outcome = h("select", { name: "outcome" }, h("option", { value: "" }, "any"), ["released", "suppressed", "repeated", "skipped"].map((one) => h("option", { value: one }, one)));
  const order = h("select", { name: "order" }, h("option", { value: "newest" }, "newest first"), h("option", { value: "oldest" }, "oldest first"));
  const form = h("form", { class: "row", role: "search", "aria-label": "Search the ledger", onsubmit: (event) => {
    event.preventDefault();
    query = Object.fromEntries(new FormData(form));
    pages = [null];
    refresh();
  } }, FIELDS.map(([name, words]) => h("label", {}, words, inputs[name])), h("label", {}, "Outcome", outcome), h("label", {}, "Order", order), h("button", { class: "main", type: "submit" }, "Search"));
  const turn = (change) => { change(); refresh(); };
  return {
    title: "Ledger",
    mount(root) {
      root.append(h("h1", {}, "Ledger"), h("p", { class: "lead" }, "Every answer that ever left, in the order of commits. Each row shown was checked against the chain of hashes."),
        h("div", { class: "grid" },
          h("section", { class: "card", "aria-labelledby": "head-title" }, h("h2", { id: "head-title" }, "Head"),
            h("p", { class: "quiet" }, "It stands for all rows. Write it down elsewhere: a ledger that was changed or rolled back no longer has it."),
            h("p", {}, head), h("div", { class: "pager" }, copy, copied)),
          h("section", { class: "card", "aria-label": "Search" }, form, found)));
    },
    async refresh(signal) {
      head.textContent = (await get("ledger/head", {}, signal)).head; // which any key may read
      const page = await get("ledger", { ...query, beyond: pages.at(-1), limit: 50 }, signal);
      const asked = Object.values(query).some((one) => one && one !== "newest" && one !== "oldest");
      fill(found, h("p", { class: "quiet", role: "status" }, asked ? `${plural(page.rows.length, "row")} of ${count(page.entries)} on this page.` : `${plural(page.entries, "row")} in all.`),
        table(page.promise ? `Rows of the ledger; each series has ${promised(page.promise)}` : "Rows of the ledger", [
          { name: "Row", number: true, of: (row) => count(row.entry) }, { name: "Stream", of: (row) => h("a", { href: `#/stream/${encodeURIComponent(row.stream)}` }, row.stream) },
          { name: "Moment", number: true, of: (row) => row.sequence }, { name: "Event", of: (row) => h("code", {}, row.event) }, { name: "Time", of: (row) => row.time },
          { name: "Outcome", of: (row) => row.outcome }, { name: "Released", of: (row) => value(row.released) }, ...charges(page, page.rows)],
        page.rows, asked ? "No row is like that." : "The ledger has no rows yet."),
        page.next && !page.rows.length ? say("", `Nothing like that down to row ${count(page.next)}; the search can go on.`) : null,
        h("div", { class: "pager" },
          h("button", { type: "button", disabled: pages.length === 1, onclick: () => turn(() => pages.pop()) }, "Back"),
          h("button", { type: "button", disabled: page.next === null, onclick: () => turn(() => pages.push(page.next)) }, "Further rows"),
          h("span", { class: "quiet" }, `Page ${pages.length}`)));
    },
    close() {},
  };
}
