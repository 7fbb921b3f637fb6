// Asks the service. The access key lives in this tab alone: in memory and in its session storage.

const PLACE = "sfumato.key";
let key = sessionStorage.getItem(PLACE);
let release = sessionStorage.getItem("sfumato.release") || null;

export const signedIn = () => key !== null;
export function keep(given) { key = given; sessionStorage.setItem(PLACE, given); }
export function forget() { key = null; sessionStorage.removeItem(PLACE); }
export const chosenRelease = () => release;
export function chooseRelease(name) {
  release = name || null;
  if (release) sessionStorage.setItem("sfumato.release", release);
  else sessionStorage.removeItem("sfumato.release");
}

export class Problem extends Error {
  constructor(status, title, detail) {
    super(detail || title);
    this.status = status;
    this.title = title;
  }
}

export async function get(path, query = {}, signal) {
  const asked = new URLSearchParams();
  const whole = { release, ...query };
  for (const [name, value] of Object.entries(whole)) {
    if (value !== null && value !== undefined && value !== "") asked.set(name, value);
  }
  const text = asked.toString();
  let reply;
  try {
    reply = await fetch(`v1/${path}${text ? `?${text}` : ""}`, {
      headers: { Authorization: `Bearer ${key}`, Accept: "application/json" }, cache: "no-store", signal,
    });
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new Problem(0, "No answer", "The service does not answer. It may be restarting; this page keeps asking.");
  }
  if (reply.ok) return reply.json();
  const told = await reply.json().catch(() => ({}));
  throw new Problem(reply.status, told.title || `Status ${reply.status}`, told.detail);
}

export const streamPath = (stream, what) => `streams/${encodeURIComponent(stream)}/${what}`;
