// The list of runs: a row for each, and what chooses them.

import { bulk } from "./bulk.js";
import { TIMES, asked, listed, read, usage } from "./place.js";
import { get, withToken } from "./server.js";
import { amount, count as counts, el, fill, plain } from "./text.js";
import { ago, dollars, elapsed, isOpen } from "./units.js";

const $ = (id) => document.getElementById(id);
/** The runs of a page of the list. */
const PAGE_RUNS = 50;
/** The time after which a search that is being typed is made. */
const SEARCH_DELAY_MS = 250;
/** How old the numbers of runs by status may be. */
const COUNT_AGE_MS = 15000;
/** The most characters of a text in a row. */
const ROW_CHARACTERS = 300;
/** The most characters of a title before what its run asks. */
const TITLE_CHARACTERS = 80;

const STATUSES = [["", "all"], ["running", "under way"], ["queued", "queued"], ["paused", "waiting"], ["completed", "completed"], ["failed", "failed"],
  ["cancelled", "cancelled"], ["quarantined", "quarantined"]];

// ---- rows -------------------------------------------------------------------------------------

const cut = (text) => (text.length > ROW_CHARACTERS ? `${text.slice(0, ROW_CHARACTERS)}…` : text);

const begin = (text) => (text.length > TITLE_CHARACTERS ? `${text.slice(0, TITLE_CHARACTERS).trimEnd()}…` : text);

/** The status of a run in a word. */
export function statusOf(run) {
  if (run.status === "running" && run.waiting) return ["paused", "running, waits"];
  return [run.status, run.status];
}

/** What a run is about, in a line: what it asks, why it failed, or what it was started for. */
function subject(run) {
  if (run.damaged) return ["fault", run.damaged];
  if (run.waiting && run.question) return ["asks", run.question];
  if (run.status === "failed" && run.error) return ["fault", run.error];
  if (run.copy) return ["asks", "a copy that came in a file"];
  if (run.behind) return ["asks", `waits for run ${run.behind} to end`];
  if (run.model_wait) {
    const { of, model, attempts, kind } = run.model_wait;
    return ["asks", attempts ? `the model ${model} is away: ${kind}` : `a ${of ? "call" : "request"} to the ${of || "model"} ${model} waits: ${kind}`];
  }
  const about = run.title || "";
  return about ? ["", about] : ["id", run.agent_run_id];
}

/** Why a run ended or waits, where the status does not say it. */
const why = (run) => (run.termination && !["complete", "cancelled", "human", "approval"].includes(run.termination) ? run.termination : "");

function row(run) {
  const [status, word] = statusOf(run);
  const [kind, about] = subject(run);
  // Who sees what a run asks, or why it failed, sees also which run it is.
  const of = ["asks", "fault"].includes(kind) && run.title ? el("span", { class: "meta" }, `${begin(run.title)} · `) : [];
  const who = [run.org, run.token || run.schedule && `schedule ${run.schedule}`, run.session].filter(Boolean).join(" · ");
  const facts = [why(run), run.iterations ? counts(run.iterations, "iteration") : ""].filter(Boolean).join(" · ");
  return [
    el("span", { class: `status ${status}` }, word),
    el("b", { class: "name" }, run.loop),
    el("span", { class: `subject ${kind}` }, of, cut(about)),
    el("span", { class: "meta facts" }, facts),
    el("span", { class: "meta who" }, who),
    el("span", { class: "meta cost" }, amount(run.cost_usd) ? dollars(run.cost_usd) : ""),
    el("span", { class: "meta took" }, elapsed(run)),
    el("span", { class: "meta when" }, ago(run.created_at)),
  ];
}

/** Lists runs in rows. They are updated in place, so that the focused row keeps the focus. */
export function lay(list, runs) {
  const known = new Map(Array.from(list.children, (item) => [item.dataset.run, item]));
  runs.forEach((run, at) => {
    const item = known.get(run.agent_run_id) || el("li", { "data-run": run.agent_run_id },
      el("a", { href: `#${encodeURIComponent(run.agent_run_id)}` }));
    known.delete(run.agent_run_id);
    const text = JSON.stringify(run);
    // The time of a run that is under way grows.
    if (item.shown !== text || isOpen(run.status)) fill(item.firstChild, row(run));
    item.shown = text;
    if (list.children[at] !== item) list.insertBefore(item, list.children[at] || null);
  });
  known.forEach((item) => item.remove());
}

/** The arrow keys move between the rows of all lists. */
function move(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || event.ctrlKey || event.altKey || event.metaKey) return;
  const rows = [...document.querySelectorAll(".runs a")].filter((one) => one.checkVisibility());
  const to = rows[rows.indexOf(document.activeElement) + step];
  if (!rows.includes(document.activeElement) || !to) return;
  event.preventDefault();
  to.focus();
}

// ---- what chooses them ------------------------------------------------------------------------

/** The filters of the list: those of the address, or of the list that a run was opened from. */
let chosen = {};

/** The filters that have no field: in a line, with the way to the list without them. */
function only() {
  const { session, until, ended_until: ended, called, waiting } = chosen;
  const parts = [waiting === "true" ? "waiting for people" : "", session ? `session ${session}` : "", until ? `started before ${until}` : "", ended ? `ended before ${ended}` : "", called === "true" ? "with the runs that runs called" : ""];
  const text = parts.filter(Boolean).join(", ");
  $("only").hidden = !text;
  fill($("only"), text ? [`Only these: ${text}. `, el("a", { class: "link", href: listed({ ...chosen, waiting: "", session: "", until: "", ended_until: "", called: "", cursor: "" }) }, "Without this filter")] : []);
}

/** Takes the filters of a place, and shows them. */
export function choose(place) {
  if (place.view === "run") return;
  chosen = place.filters;
  for (const key of ["search", "loop", "since", "ended_since"]) {
    const field = $(key);
    // What is typed meanwhile stays.
    if (field === document.activeElement && key === "search") continue;
    const value = chosen[key] || "";
    if (field.options && ![...field.options].some((one) => one.value === value)) field.append(el("option", { value }, value));
    field.value = value;
  }
  only();
}

/** The address of the list that is shown. */
export const back = () => (Object.keys(chosen).length ? listed(chosen) : "#");

let typed = 0;

/** Shows other runs. A search that is being typed is one step of the history. */
function change(filters) {
  const to = listed({ ...chosen, cursor: "", ...filters });
  if (to === location.hash) return;
  const types = "search" in filters && read().filters.search;
  if (!types) { location.hash = to; return; }
  history.replaceState(null, "", to);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

function chips() {
  const list = $("statuses");
  if (!list.firstChild) {
    fill(list, STATUSES.map(([status, word]) => el("button", { type: "button", class: status, "data-status": status,
      on: () => change({ status }) }, word)));
  }
  // An address may name several, with commas between them.
  const pressed = (chosen.status || "").split(",");
  for (const one of list.children) one.setAttribute("aria-pressed", String(pressed.includes(one.dataset.status)));
}

/** The numbers of runs by status, by where they come from. */
const numbers = { lists: {}, usage: {}, of: null, at: 0 };

function count() {
  const known = { ...numbers.usage, ...numbers.lists };
  for (const one of $("statuses").children) {
    // Before the word, by the style: the word alone names the button.
    const number = known[one.dataset.status];
    if (number === undefined) delete one.dataset.count;
    else one.dataset.count = number;
  }
}

/** Shows how many runs have each status, as far as lists know it: of `{ running: "3" }` those under way. */
export function counted(of) {
  numbers.lists = of;
  count();
}

/** Counts the runs with the other filters of the list. What the server would have to read run by run is not counted. */
async function figured() {
  const { loop, since, until } = chosen;
  const isCounted = read().view === "runs" && !["search", "waiting", "session", "called"].some((key) => chosen[key]) && !TIMES.some((key) => key.startsWith("ended") && chosen[key]);
  const of = isCounted ? usage({ loop, since, until }) : "";
  if (numbers.of === of && (!of || Date.now() - numbers.at < COUNT_AGE_MS)) return;
  const isOther = numbers.of !== of;
  Object.assign(numbers, { of, at: Date.now(), usage: isOther ? {} : numbers.usage });
  const { total, left_out: left } = of ? await get(of).catch(() => ({})) : {};
  if (numbers.of !== of) return;
  const least = (n) => `${Number(plain(n)).toLocaleString("en")}${left.older_runs ? "+" : ""}`;
  numbers.usage = total ? { "": least(total.runs), completed: least(total.completed), failed: least(total.failed) } : {};
  count();
}

/** Offers the loops of the server, and those of the runs that are listed, as a filter. */
export function offer(names) {
  const field = $("loop");
  const known = new Set(Array.from(field.options, (one) => one.value));
  for (const name of names) if (name && !known.has(name)) { known.add(name); field.append(el("option", { value: name }, name)); }
}

withToken(() => {
  Object.assign(numbers, { lists: {}, usage: {}, of: null, at: 0 });
  for (const one of [...$("loop").options]) if (one.value) one.remove();
  for (const list of document.querySelectorAll(".runs")) list.replaceChildren();
});

/** Asks for the runs of the list. */
export const wanted = () => get(asked(chosen, PAGE_RUNS));

/** Shows the runs of the list without those that are shown above it. */
export function list({ agents, next_cursor: next, fault }, shown) {
  chips();
  figured();
  offer(agents.map((run) => run.loop));
  const rest = agents.filter((run) => !shown.has(run.agent_run_id));
  lay($("runs"), rest);
  $("none").hidden = rest.length > 0;
  $("none").classList.toggle("fault", Boolean(fault));
  fill($("none"), fault || (shown.size ? "There are no other runs." : "There are no such runs."));
  bulk($("bulk"), chosen, agents.length);
  $("set-aside").hidden = chosen.status !== "quarantined" || !agents.length;
  $("pages").hidden = !next && !chosen.cursor;
  $("newest").hidden = !chosen.cursor;
  $("newest").href = listed({ ...chosen, cursor: "" });
  $("older").hidden = !next;
  $("older").href = listed({ ...chosen, cursor: plain(next || "") });
}

/** Marks the run that is open. */
export function mark(id) {
  for (const item of document.querySelectorAll(".runs li")) {
    if (item.dataset.run === id) item.firstChild.setAttribute("aria-current", "page");
    else item.firstChild.removeAttribute("aria-current");
  }
}

$("filters").addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(typed); change({ search: $("search").value.trim() }); });
$("search").addEventListener("input", () => {
  clearTimeout(typed);
  typed = setTimeout(() => change({ search: $("search").value.trim() }), SEARCH_DELAY_MS);
});
for (const key of ["loop", "since", "ended_since"]) $(key).addEventListener("change", () => change({ [key]: $(key).value }));
$("lists").addEventListener("keydown", move);
