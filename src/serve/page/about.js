// The head of a run: what it is, where it is, what it cost, who started it, and what can be done with it.

import { acts } from "./acts.js";
import { count, el, fill, plain, prose, refill } from "./text.js";
import { ago, dollars, span } from "./units.js";

/** A longer objective is folded, in characters. */
const LONG_OBJECTIVE = 320;
const BEGIN = 160;
/** The most sub-runs that are named. */
const MOST_SUBRUNS = 20;

const link = (id) => el("a", { class: "link id", href: `#${encodeURIComponent(id)}` }, id);

function objective(text) {
  if (!text) return [];
  if (text.length <= LONG_OBJECTIVE) return el("p", { class: "objective" }, text);
  return el("details", { class: "objective" }, el("summary", {}, `${text.slice(0, BEGIN).trimEnd()}…`), el("p", {}, prose(text)));
}

function facts(run, status) {
  const { usage, webhook } = status.result;
  const about = usage.at_most ? "at most " : usage.estimated ? "about " : "";
  const tokens = Number(plain(usage.input_tokens)) + Number(plain(usage.output_tokens));
  const all = [
    ["Started", ago(status.created_at)],
    [status.completed_at ? "Took" : "For", span(status.created_at, status.completed_at)],
    ["Cost", usage.cost_usd === undefined || usage.cost_usd === null ? "" : `${about}${dollars(usage.cost_usd)}`],
    ["Tokens", tokens ? `${about}${tokens.toLocaleString("en")}` : ""],
    ["Iterations", run.flow ? "" : `${plain(status.iterations)}${run.most ? ` of ${plain(run.most)}` : ""}`],
    ["Model", run.flow ? "" : run.model],
    ["Started by", status.token || (webhook ? `webhook ${webhook.name}, ${webhook.delivery}` : "")],
    ["Session", status.session || ""],
    ["Copy", status.copy ? "came in a file, and nobody continues it here" : ""],
    ["Waits for", status.behind ? link(status.behind) : ""],
    ["Called by", status.called_by ? link(status.called_by) : ""],
    ["Rerun of", status.rerun_of ? link(status.rerun_of) : ""],
    ["Follows", status.previous_run_id ? link(status.previous_run_id) : ""],
    ["Callback", status.callback ? `${status.callback.state.replace("_", " ")}, ${count(status.callback.tries, "post")}` : ""],
  ];
  return all.filter(([, fact]) => fact !== "").map(([name, fact]) => el("div", {}, el("dt", {}, name), el("dd", {}, fact)));
}

/** The runs that it called. */
function subruns({ triggered_runs: runs = [] }) {
  if (!runs.length) return [];
  const more = runs.length - MOST_SUBRUNS;
  return el("details", { class: "subruns" }, el("summary", {}, `Called ${count(runs.length, "run")}`),
    el("ul", {}, runs.slice(0, MOST_SUBRUNS).map((id) => el("li", {}, link(id)))), more > 0 ? el("p", { class: "meta" }, `and ${more} more`) : []);
}

/** Shows what the first event says of a run; the rest follows with its status. */
export function begin(run, section, event) {
  Object.assign(run, { flow: !event.max_iterations, most: event.max_iterations, model: event.model, name: event.loop_name });
  const fork = event.fork_of ? el("p", { class: "meta" }, "fork of ", link(event.fork_of.run_id), ` at iteration ${plain(event.fork_of.iteration)}`) : [];
  fill(section, el("p", { class: "meta id" }, event.run_id),
    el("div", { class: "line" }, el("h2", { class: "run-name" }, event.loop_name, " ", el("span", { class: "state" })), el("div", { class: "acts" })),
    el("dl", { class: "facts" }), fork, objective(event.objective), el("div", { class: "below" }));
}

/** Shows the status of a run in its head. */
export function state(run, section, status, done) {
  const place = section.querySelector(".state");
  if (!place) return;
  const word = status.status === "running" && status.result.waiting?.length ? "running, waits" : status.status;
  const why = status.result.termination;
  const says = why && !["complete", "cancelled", status.status].includes(why) ? why.replaceAll("_", " ") : "";
  fill(place, el("span", { class: `status ${status.status}` }, word), says ? el("span", { class: "meta" }, ` ${says}`) : []);
  refill(section.querySelector(".facts"), facts(run, status));
  const key = status.status;
  const buttons = section.querySelector(".acts");
  if (buttons.shown !== key) refill(buttons, acts(run, status, done));
  buttons.shown = key;
  const below = section.querySelector(".below");
  const called = JSON.stringify(status.triggered_runs || []);
  if (below.shown !== called) fill(below, subruns(status));
  below.shown = called;
}
