// One iteration of a loop: what its model was sent, and the memory and the cost at that time.

import { href } from "./flow.js";
import { because, get, of } from "./server.js";
import { box, count, el, fill, plain, took, when } from "./text.js";
import { dollars } from "./units.js";

/** The place of an iteration in the trace; its number leads to the iteration alone. */
export function turn(run, trace, iteration) {
  if (!run.steps.has(iteration)) {
    const number = plain(iteration);
    const item = el("li", { class: "step" },
      el("a", { class: "number", href: href(run, number), "aria-label": `Iteration ${number}: what the model was sent` }, number),
      el("p", { class: "thought" }), el("p", { class: "meta" }));
    run.steps.set(iteration, item);
    trace.append(item);
    if (run.at) mark(run, trace);
  }
  return run.steps.get(iteration);
}

/** Of the trace, shows the iteration alone that was picked, and the way to those beside it. */
function mark(run, trace) {
  trace.classList.toggle("alone", Boolean(run.at));
  for (const [iteration, item] of run.steps) item.classList.toggle("picked", plain(iteration) === run.at);
  if (!run.beside) return;
  const has = (number) => [...run.steps.keys()].some((iteration) => Number(iteration) === number);
  const at = Number(run.at);
  const ways = [[at - 1, "Previous"], [at + 1, "Next"]].filter(([number]) => has(number));
  const text = `${at} ${ways.map(([, word]) => word)}`;
  if (run.beside.shown !== text) fill(run.beside, ways.map(([number, word]) => el("a", { class: "link", href: href(run, number) }, word)));
  run.beside.shown = text;
}

/** A message, with the native calls of a reply. */
function message(number, said) {
  const id = said.call_id ? ` of the call ${said.call_id}` : "";
  const calls = (said.calls || []).map((call) => box(`→ ${call.name} ${call.arguments}`, "sent"));
  return el("div", { class: "message" }, el("p", { class: "meta" }, el("b", {}, plain(number)), ` ${said.role}${id}`),
    said.text ? box(said.text, "sent") : [], calls);
}

/** The messages of a prompt. Those before the last reply were in the prompt before, or stand for what was. */
function messages(all) {
  const rows = all.map((said, n) => message(n + 1, said));
  const last = all.map((said) => said.role).lastIndexOf("assistant");
  if (last < 1) return rows;
  return [el("details", {}, el("summary", {}, last === 1 ? "Message 1" : `Messages 1 to ${last}`), rows.slice(0, last)), rows.slice(last)];
}

function content(view) {
  const cost = view.cost_usd === undefined ? "" : ` · ${dollars(view.cost_usd)}`;
  return [
    el("p", { class: "meta" }, "asked at ", when(view.timestamp), ` · until then ${took(view.active_ms)} active, ${count(view.tokens, "token")}${cost}`),
    el("h3", {}, `What the model was sent: ${count(view.messages.length, "message")}`), messages(view.messages),
    Object.keys(view.memory).length ? [el("h3", {}, "Memory"), box(view.memory, "sent")] : [],
  ];
}

/** Shows the iteration at the address of a run, and of the trace what came of it; without an address, all of the trace. */
export async function pick(run, section, trace) {
  const { at } = run;
  const left = trace.querySelector(".picked");
  section.hidden = !at;
  run.beside = at ? el("span", { class: "beside" }) : null;
  mark(run, trace);
  if (!at) {
    fill(section);
    left?.scrollIntoView();
    return;
  }
  const way = el("nav", { class: "way", "aria-label": "Where this is" }, el("ol", {}, el("li", {}, el("a", { href: href(run, "") },
    "All iterations")), el("li", {}, el("span", { "aria-current": "location" }, `iteration ${at}`))), run.beside);
  const body = el("div", {});
  fill(section, el("h2", { class: "title" }, "Iteration"), way, body);
  section.scrollIntoView();
  const { signal } = run.stop;
  try {
    const view = await get(of(run.id, `trace?at=${encodeURIComponent(at)}`), { signal });
    if (run.at === at) fill(body, content(view));
  } catch (why) {
    if (run.at === at && !signal.aborted) fill(body, el("p", { class: "fault" }, because(why)));
  }
}
