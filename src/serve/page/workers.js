// The processes that execute the runs of the store.

import { because, get } from "./server.js";
import { el, fill, plain, refill } from "./text.js";
import { ago, long } from "./units.js";

/** The most runs of a process that are named, and the digits of a digest. */
const MOST_RUNS = 5;
const DIGEST_DIGITS = 12;
/** Clocks that differ by less are taken for equal. */
const CLOCK_DIFFERS_MS = 1000;

function heartbeat(worker) {
  if (!worker.alive) return ["failed", "gone"];
  return ["completed", worker.silent_ms === undefined ? "alive" : `alive, heard ${long(Math.round(Number(plain(worker.silent_ms)) / 1000) * 1000)} ago`];
}

function row(worker) {
  const [status, word] = heartbeat(worker);
  const runs = worker.runs.slice(0, MOST_RUNS).map((id) => el("a", { class: "link id", href: `#${encodeURIComponent(id)}` }, id));
  const more = Number(plain(worker.driven)) - runs.length;
  const host = [worker.host, worker.address, worker.process ? `process ${plain(worker.process)}` : ""].filter(Boolean).join(", ");
  return el("tr", {}, el("th", { scope: "row" }, worker.name, worker.this_server ? el("span", { class: "meta" }, " (this server)") : []),
    el("td", {}, el("span", { class: `status ${status}` }, word)), el("td", {}, host, clock(worker)), el("td", {}, worker.version || ""),
    el("td", { class: "id" }, worker.folder ? worker.folder.slice(0, DIGEST_DIGITS) : ""),
    el("td", {}, ago(worker.since)), el("td", {}, plain(worker.driven), runs.length ? el("div", { class: "runs-of" }, runs, more > 0 ? el("span", { class: "meta" }, `and ${more} more`) : []) : []));
}

const HEADS = ["Worker", "State", "Where", "Version", "Folder", "Since", "Runs"];

/** How far a clock differs, if that matters. */
function clock({ clock_ahead_ms: ahead }) {
  const ms = Number(plain(ahead ?? 0));
  return Math.abs(ms) < CLOCK_DIFFERS_MS ? [] : el("div", { class: "fault" }, `its clock is ${long(Math.abs(ms))} ${ms > 0 ? "ahead" : "behind"}`);
}

const CIRCUITS = { closed: ["completed", "closed"], half_open: ["paused", "half open: one call tries it"], open: ["failed", "open: no call is made"] };

/** The circuits of this server. */
function circuitsOf(circuits) {
  const one = ({ of, name, state, since }) => {
    const [status, word] = CIRCUITS[state] || ["", state];
    return el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, of), el("td", {}, el("span", { class: `status ${status}` }, word)), el("td", {}, since ? ago(since) : ""));
  };
  return el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "The circuits of this server" }, el("table", { class: "approvals" },
    el("thead", {}, el("tr", {}, ["Circuit", "Of", "State", "Since"].map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, circuits.map(one))));
}

/** Shows the processes. */
export async function workers(section) {
  const isNew = section.shown !== "workers";
  section.shown = "workers";
  if (isNew) fill(section, el("p", { class: "empty" }, "…"));
  try {
    const { workers: all, circuits = [] } = await get("workers");
    if (section.shown !== "workers") return;
    const folders = new Set(all.filter((one) => one.alive && one.folder).map((one) => one.folder)).size;
    const text = JSON.stringify([all, circuits]);
    if (section.known === text && !isNew) return;
    section.known = text;
    refill(section, el("p", { class: "meta" }, all.length === 1 ? "1 process" : `${all.length} processes`, folders > 1 ? `. They serve ${folders} different folders.` : ""),
      el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "The workers" }, el("table", { class: "approvals" },
        el("thead", {}, el("tr", {}, HEADS.map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, all.map(row)))),
      circuits.length ? circuitsOf(circuits) : []);
  } catch (why) {
    section.known = "";
    fill(section, el("p", { class: "fault" }, because(why)));
  }
}
