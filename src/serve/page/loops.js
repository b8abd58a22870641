// The loops and workflows of the server: what they are for, when they start by themselves, and a form that starts one.

import { startKey } from "./acts.js";
import { inputForm } from "./form.js";
import { listed } from "./place.js";
import { Refused, ask, because, get } from "./server.js";
import { changed } from "./said.js";
import { el, fill } from "./text.js";
import { ago } from "./units.js";

const KINDS = { loop: "loop", foreach: "loop over items", workflow: "workflow" };
/** The most tools that are named. */
const MOST_TOOLS = 12;

const startAt = (name) => `#/loops/${encodeURIComponent(name)}`;

function schedule(row) {
  if (!row) return [];
  const { every, at, timezone, next, waits_for: waits } = row;
  const when = [`every ${every.replace(/^every /, "")}`, at ? `at ${at}` : "", timezone || ""].filter(Boolean).join(" ");
  return el("p", {}, el("b", {}, "Schedule: "), when, next ? [", next ", ago(next)] : [],
    waits ? [". It waits for ", el("a", { class: "link id", href: `#${encodeURIComponent(waits.agent_run_id)}` }, waits.agent_run_id), ` (${waits.status})`] : []);
}

/** That a loop is switched off, since when and why. */
function off(disabled) {
  if (!disabled) return [];
  return el("p", {}, el("span", { class: "status failed" }, "switched off"), " ", ago(disabled.since), disabled.reason ? `: ${disabled.reason}` : "");
}

/** The deliveries that start it. */
function webhook(row) {
  return row ? el("p", {}, el("b", {}, "Webhook: "), `${row.path}, signed as ${row.verify === "hmac" ? "its document says" : `${row.verify} does`}`) : [];
}

function card(row) {
  const own = row.tools.filter((tool) => !tool.startsWith("__"));
  const more = own.length - MOST_TOOLS;
  return el("li", { class: "card" },
    el("div", { class: "line" }, el("h2", {}, row.name, " ", el("span", { class: "meta" }, KINDS[row.kind] || row.kind)),
      el("span", { class: "acts" }, el("a", { class: "link", href: listed({ loop: row.name }) }, "Its runs"), el("a", { class: "button", href: startAt(row.name) }, `Start ${row.name}`))),
    row.description ? el("p", {}, row.description) : [], schedule(row.schedule), webhook(row.webhook), off(row.disabled),
    own.length ? el("p", { class: "meta" }, `${row.kind === "loop" ? "tools" : "steps"}: ${own.slice(0, MOST_TOOLS).join(", ")}${more > 0 ? ` and ${more} more` : ""}`) : []);
}

/** Why a start was refused: the sentence, and what is wrong with the input. */
function refused(why) {
  const faults = (why.diagnostics || []).map((one) => el("li", {}, one.message || String(one)));
  return [el("p", {}, because(why)), faults.length > 1 ? el("ul", { class: "faults" }, faults) : []];
}

function start(row) {
  const { rows, read } = inputForm(row.input);
  const fault = el("div", { class: "fault", role: "alert" });
  const session = el("input", { id: "start-session", spellcheck: "false" });
  const send = el("button", { class: "first" }, "Start");
  // What is sent twice is one run.
  let key = startKey();
  const form = el("form", { class: "card start", on: async (event) => {
    event.preventDefault();
    fill(fault);
    let body;
    try {
      const named = session.value.trim() ? `,"session":${JSON.stringify(session.value.trim())}` : "";
      body = `{"loop":${JSON.stringify(row.name)},"input":${read()}${named}}`;
    } catch (why) {
      return fill(fault, el("p", {}, why.message));
    }
    send.disabled = true;
    try {
      const answer = await ask("agents/execute?async=true", { method: "POST", body, headers: { "Idempotency-Key": key } });
      const { agent_run_id: id } = await answer.json();
      changed();
      location.hash = `#${encodeURIComponent(id)}`;
    } catch (why) {
      fill(fault, refused(why));
      // What was refused did not start. What was not answered may have started: sent again, it is that run.
      if (why instanceof Refused && !why.passes) key = startKey();
      send.disabled = false;
    }
    return undefined;
  } }, rows, el("details", {}, el("summary", {}, "More"), el("div", { class: "input-of" }, el("label", { for: "start-session" }, "Session"), session,
    el("p", { class: "meta" }, "runs of one session share their memory"))), fault, el("div", { class: "buttons" }, send, el("a", { class: "button", href: "#/loops" }, "Back")));
  return [el("h2", { class: "run-name" }, `Start ${row.name}`), row.description ? el("p", {}, row.description) : [], form];
}

/** Shows the loops of the server, or the form that starts the one of this name. */
export async function loops(section, name) {
  if (section.shown !== `loops/${name}`) fill(section, el("p", { class: "empty" }, "…"));
  section.shown = `loops/${name}`;
  try {
    const { loops: all, reload_failed_since: fault } = await get("loops");
    if (section.shown !== `loops/${name}`) return;
    const row = all.find((one) => one.name === name);
    if (name && !row) fill(section, el("p", { class: "fault" }, `There is no loop ${name}.`), el("a", { class: "link", href: "#/loops" }, "All loops"));
    else if (row) fill(section, start(row));
    else {
      fill(section, el("p", { class: "meta" }, all.length === 1 ? "1 document" : `${all.length} documents`),
        fault ? el("p", { class: "fault", role: "alert" }, "The folder has a fault since ", ago(fault), ", and is served as it was before. The log says which.") : [],
        el("ul", { class: "cards" }, all.map(card)));
    }
  } catch (why) {
    fill(section, el("p", { class: "fault" }, because(why)));
  }
}
