// What is done with all runs of a list at once: first the server says with which, then it is confirmed.

import { confirm } from "./acts.js";
import { button } from "./decide.js";
import { TIMES, moment } from "./place.js";
import { ask, because } from "./server.js";
import { changed, say, stoppedBy } from "./said.js";
import { count, el, fill } from "./text.js";

const CANCEL = { action: "cancel", verb: "Cancel", done: "cancelled", kind: "bad",
  text: "They end, and can't continue. What their calls did stays done, and their traces stay." };
/** What can be done with the runs of a status, and how it is said. */
const ACTIONS = {
  failed: { action: "retry", verb: "Retry", done: "retried", kind: "first", text: "Runs whose failure can't be retried are left as they are." },
  paused: CANCEL,
  running: CANCEL,
  queued: CANCEL,
};
/** The filters of a list that a request of many runs takes; those that it does not take must be empty. */
const TAKEN = ["status", "loop", "search", ...TIMES];
const LEFT_OUT = ["waiting", "session", "called", "cursor"];
/** The most runs of a request, the number from which they are not counted, and the most reasons that are shown. */
const MOST_RUNS = 500;
const MOST_COUNTED = 10000;
const MOST_REASONS = 5;

async function send(filters, { action }, more) {
  const body = { action, limit: MOST_RUNS, ...more };
  for (const key of TAKEN) if (filters[key]) body[key] = TIMES.includes(key) ? moment(filters[key]) : filters[key];
  return (await ask("agents/bulk", { method: "POST", body: JSON.stringify(body) })).json();
}

/** Says what became of the runs; the reasons of those with which it could not be done are listed. */
function report(says, { done, failed, stopped }, { done: word }) {
  const reasons = failed.slice(0, MOST_REASONS).map((one) => el("li", {},
    el("a", { class: "link id", href: `#${encodeURIComponent(one.agent_run_id)}` }, one.agent_run_id), `: ${one.detail}`));
  fill(says, el("p", { role: "status" }, `${count(done.length, "run")} ${word}${failed.length ? `, ${failed.length} left as they are:` : "."}`,
    stopped ? ` The runs after these were not tried: ${stoppedBy(stopped)}.` : ""),
  reasons.length ? el("ul", { class: "faults" }, reasons) : [],
  failed.length > reasons.length ? el("p", { class: "meta" }, `and ${failed.length - reasons.length} more`) : []);
}

async function start(filters, of, says) {
  try {
    const { matched, done } = await send(filters, of, { dry_run: true });
    if (!done.length) return say("You can do that with none of these runs.");
    const some = matched > done.length ? ` They are the oldest of the ${matched}${matched >= MOST_COUNTED ? " or more" : ""} that match.` : "";
    const what = `${of.verb} ${count(done.length, "run")}`;
    return confirm({ title: `${what}?`, kind: of.kind, verb: what, keep: "Leave them",
      note: of.action === "cancel" ? "Why (the traces keep it)" : "", text: `${of.text}${some}` }, async (reason) => {
      // These runs, and none that matches since.
      report(says, await send(filters, of, { runs: done, ...(reason ? { reason } : {}) }), of);
      changed();
    });
  } catch (why) {
    return say(because(why));
  }
}

/** Offers what can be done with all runs of a list. */
export function bulk(section, filters, listed) {
  const of = LEFT_OUT.some((key) => filters[key]) ? undefined : ACTIONS[filters.status];
  const key = JSON.stringify(filters);
  const isKnown = section.shown === key;
  // What was said of them stays when none is left.
  section.hidden = !of || !listed && !(isKnown && section.querySelector("[role=status]"));
  if (isKnown) return;
  section.shown = key;
  const says = el("div", {});
  fill(section, of ? [el("div", { class: "buttons" }, button(`${of.verb} these…`, of.kind === "bad" ? "small bad" : "small", () => start(filters, of, says))), says] : []);
}
