// Routes, sign-in, theme and refresh. A page is { title, mount(root, rest), refresh(signal), close() }.
import { chooseRelease, chosenRelease, forget, get, keep, signedIn } from "./api.js";
import { fill, h, say } from "./dom.js";
import { ledgerPage } from "./page_ledger.js";
import { modelsPage } from "./page_models.js";
import { overviewPage } from "./page_overview.js";
import { planningPage } from "./page_planning.js";
import { streamPage } from "./page_stream.js";

const EVERY = 5000;
const PAGES = { overview: overviewPage, stream: streamPage, planning: planningPage, ledger: ledgerPage, models: modelsPage };
const at = (id) => document.getElementById(id);
const main = at("main");
let page = null;
let told = null;
let root = null;
let timer = null;
let running = null;
let paused = false;

// ---- theme

const dark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
function showTheme() {
  at("theme").textContent = dark() ? "Light" : "Dark";
  at("theme").setAttribute("aria-label", dark() ? "Switch to light colours" : "Switch to dark colours");
  window.dispatchEvent(new Event("sfumato-theme"));
}
at("theme").addEventListener("click", () => {
  const chosen = dark() ? "light" : "dark";
  document.documentElement.dataset.theme = chosen;
  sessionStorage.setItem("sfumato.theme", chosen);
  showTheme();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);

// ---- refresh

async function refresh() {
  clearTimeout(timer);
  if (!page || !signedIn()) return;
  if (running) running.abort();
  const mine = new AbortController();
  running = mine;
  try {
    await page.refresh(mine.signal);
    if (mine.signal.aborted) return;
    root.hidden = false;
    fill(told);
    const now = new Date().toLocaleTimeString("en-GB");
    at("refreshed").textContent = paused ? `As of ${now}; paused.` : `As of ${now}; refreshed every ${pace() / 1000} seconds while this tab is looked at.`;
  } catch (problem) {
    if (mine.signal.aborted || problem.name === "AbortError") return;
    if (problem.status === 401) { leave("The access key was not accepted, or has ended."); return; }
    if (problem.status === 403) { root.hidden = Boolean(page.all); fill(told, partial()); return; }
    fill(told, say("bad", h("strong", {}, problem.title || "A fault of this page"), h("p", {}, explain(problem))));
    if (problem.status === undefined) console.error(problem);
  } finally {
    if (running === mine) { running = null; plan(); }
  }
}
function pace() {
  return page && page.every ? page.every() : EVERY;
}
function plan() {
  clearTimeout(timer);
  if (!paused && !document.hidden) timer = setTimeout(refresh, pace());
}
// Whoever is signed in may read: what is refused then is of streams beyond the key.
function partial() {
  return say("", h("strong", {}, "This key sees some streams only"),
    h("p", {}, page && page.all ? ["This page is about all streams of the release. Yours are under ", h("a", { href: "#/stream" }, "Stream"), "."] : "What was asked for is not among them; name a stream that is."));
}
function explain(problem) {
  if (problem.status === 403) return `This access key may not read that. ${problem.message}`;
  return problem.message;
}
document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : !paused && refresh()));
at("pause").addEventListener("click", () => {
  paused = !paused;
  at("pause").textContent = paused ? "Resume" : "Pause";
  at("pause").setAttribute("aria-pressed", String(paused));
  if (paused) { clearTimeout(timer); at("refreshed").textContent = "Paused."; } else refresh();
});

// ---- sign-in

function show(signed) {
  for (const id of ["nav", "pause", "leave", "release-choice"]) at(id).hidden = !signed;
  if (!signed) at("refreshed").textContent = "";
}
function leave(why = "") {
  forget();
  chooseRelease(null);
  close();
  show(false);
  signIn(why);
}
function signIn(why) {
  const input = h("input", { type: "password", id: "key", autocomplete: "off", spellcheck: "false", required: true, "aria-describedby": "key-help" });
  const problem = h("div", {}, why ? say("bad", why) : null);
  const button = h("button", { class: "main", type: "submit" }, "Sign in");
  const form = h("form", {
    onsubmit: async (event) => {
      event.preventDefault();
      button.disabled = true;
      keep(input.value.trim());
      try {
        await enter();
      } catch (trouble) {
        forget();
        const words = trouble.status === 401 ? "The access key was not accepted." : explain(trouble);
        fill(problem, say("bad", words));
        button.disabled = false;
        input.focus();
      }
    },
  },
  h("label", { for: "key" }, "Access key"), input,
  h("p", { class: "quiet", id: "key-help" }, "It begins with sfk_ and needs the action read. It is kept in this tab alone, and is gone when the tab is closed."), button);
  document.title = "Sign in · Sfumato";
  fill(main, h("section", { class: "card sign", "aria-labelledby": "sign-title" },
    h("h1", { id: "sign-title" }, "Sign in"), h("p", { class: "quiet" }, "What releases leaked, and what they may still tell."), problem, form));
  input.focus();
}
async function enter() {
  const { rows, limited } = await get("catalogue", { release: null });
  const releases = rows.filter((row) => row.kind === "release");
  const names = releases.map((row) => row.name);
  // A key for some releases names the one it asks.
  if (!names.includes(chosenRelease())) chooseRelease(limited ? names[0] : null);
  const usual = limited ? null : releases.find((row) => row.default);
  fill(at("release"), limited ? null :
    h("option", { value: "" }, usual ? `${usual.name} (default)` : "default"),
    names.filter((name) => !usual || name !== usual.name).map((name) => h("option", { value: name }, name)));
  at("release").value = usual && chosenRelease() === usual.name ? "" : chosenRelease() || "";
  show(true);
  // A key for some streams begins with those: the overview is about all of them.
  const whole = await get("overview").then(() => true, (problem) => problem.status !== 403);
  if (!whole && ["", "#/", "#/overview"].includes(location.hash)) history.replaceState(null, "", "#/stream");
  route();
}
at("leave").addEventListener("click", () => leave());
at("release").addEventListener("change", (event) => {
  chooseRelease(event.target.value);
  if (location.hash.startsWith("#/stream/")) location.hash = "#/stream";
  else route(false);
});

// ---- routes

function close() {
  clearTimeout(timer);
  if (running) running.abort();
  running = null;
  if (page) page.close();
  page = null;
}
function route(focus = true) {
  if (!signedIn()) { signIn(""); return; }
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  const make = PAGES[name] || overviewPage;
  close();
  page = make(refresh);
  document.title = `${page.title} · Sfumato`;
  document.querySelectorAll("#nav a").forEach((link) => {
    if (link.getAttribute("href") === `#/${name || "overview"}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
  told = h("div");
  at("refreshed").textContent = "";
  root = h("div");
  fill(main, told, root);
  page.mount(root, rest.map(decodeURIComponent));
  const title = root.querySelector("h1");
  if (title && focus) { title.tabIndex = -1; title.focus({ preventScroll: true }); }
  window.scrollTo(0, 0);
  refresh();
}
window.addEventListener("hashchange", () => {
  if (location.hash === "#main") { main.focus(); return; }
  route();
});

showTheme();
if (signedIn()) enter().catch((problem) => leave(problem.status === 401 ? "The access key was not accepted, or has ended." : problem.message));
else signIn("");
