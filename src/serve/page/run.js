// One run: its events are followed, and shown as they come.

import { begin, state } from "./about.js";
import { questions } from "./decide.js";
import { PAGE, board, href, nowhere } from "./flow.js";
import { aside, panel, poster } from "./pause.js";
import { Refused, because, get, of, stream } from "./server.js";
import { changed, note, say } from "./said.js";
import { away, box, called, continuation, count, decision, el, ending, fill, head, plain, post, prose, stopped, took } from "./text.js";
import { pick, turn } from "./time.js";
import { rowsOfLoop, rowsOfSteps, waterfall } from "./waterfall.js";

const $ = (id) => document.getElementById(id);
const LONGEST = 4000; // characters that are shown of a reply that is arriving
const RETRY_MS = 1000;
/** After this time without an event, the last of the past ones is taken for the present. */
const SETTLE_MS = 20;
/** The least time between two looks at the status of a run that is under way. */
const FACTS_MS = 3000;
/** The least time between two looks at a run that has ended: somebody else may retry it. */
const ENDED_MS = 5000;

let open = { id: "" };

/** Which run is open, and which one was. */
export const is = { open: (id) => id === open.id && open.flow !== undefined, last: "" };

export function leave() {
  open.stop?.abort();
  open = { id: "" };
  $("run").hidden = true;
  document.body.classList.remove("one");
}

/** Shows other steps or another iteration of the run that is open. */
export function move({ at }) {
  if (at === open.at) return undefined;
  Object.assign(open, { at, from: 0, only: "" });
  $("run").focus({ preventScroll: true });
  return open.flow ? reread(open) : pick(open, $("time"), $("trace"));
}

/** Asks for the steps at the present address: once of a run that has ended, else from now on. */
async function reread(run) {
  if (!run.over) {
    run.stop.abort();
    run.stop = new AbortController();
    return follow(run);
  }
  try {
    const view = await get(of(run.id, `trace?${steps(run)}`));
    if (open === run) show.steps(run, view);
  } catch (why) {
    if (open === run && why.code === "no_such_step") nowhere(run, $("steps"), why.message);
    else say(because(why));
  }
  return undefined;
}

const steps = (run) => `at=${encodeURIComponent(run.at)}&limit=${PAGE}&from=${run.from}${run.only ? `&status=${run.only}` : ""}`;

/** Opens a run at an address of it. */
export function enter({ id, at }) {
  leave();
  is.last = id;
  open = { id, at, from: 0, only: "", last: "", stop: new AbortController(), cards: new Map(), steps: new Map(), panel: "", desk: {}, timer: 0, times: new Map() };
  for (const part of ["about", "trace", "pause", "end", "steps", "time", "waterfall"]) $(part).replaceChildren();
  $("steps").shown = "";
  $("steps").hidden = $("waterfall").hidden = $("time").hidden = $("pause").hidden = $("asked").hidden = $("end").hidden = $("busy").hidden = true;
  $("run").hidden = false;
  document.body.classList.add("one");
  $("run").focus({ preventScroll: true });
  scrollTo(0, 0);
  follow(open);
}

async function follow(run) {
  const { stop } = run;
  const gone = () => open !== run || run.stop !== stop;
  for (let over = false; !over && !gone();) {
    try {
      arriving(run, null);
      for await (const [id, event] of stream(of(run.id, `events?deltas=true&${steps(run)}`), run.last, run.stop.signal)) {
        if (gone()) return;
        if (id) run.last = id;
        if (id && run.away) run.away = busy("");
        run.over = over = event.event === "result";
        show[event.event]?.(run, event);
      }
    } catch (why) {
      if (gone()) return;
      if (why instanceof Refused && !why.passes) return fill($("about"), el("p", { class: "fault", role: "alert" }, why.message));
      note("The server can't be reached; retrying.");
    }
    if (!over) await new Promise((go) => setTimeout(go, RETRY_MS));
  }
}

/** The place of an iteration in the trace. */
const step = (run, iteration) => turn(run, $("trace"), iteration);

/** Shows a reply while it arrives. Each connection, attempt and driver begins it again; the recorded reply replaces it. */
function arriving(run, part) {
  const { live } = run;
  if (live && (!part || part.iteration !== live.iteration)) {
    const [, thought, meta] = step(run, live.iteration).children;
    thought.classList.remove("live");
    fill(thought, "");
    fill(meta, "");
  }
  run.live = part;
  if (!part) return;
  const again = live && live.iteration === part.iteration && live.attempt === part.attempt;
  part.text = (again ? live.text : "") + part.text;
  if (part.text.length > LONGEST) part.text = `…${part.text.slice(-LONGEST)}`;
  part.first = part.time_to_first_token_ms ?? (again ? live.first : undefined);
  const first = part.first === undefined ? "" : `, the first after ${took(part.first)}`;
  const [, thought, meta] = step(run, part.iteration).children;
  thought.classList.add("live");
  fill(thought, part.text);
  fill(meta, `${part.estimated ? "about " : ""}${count(part.output_tokens, "token")} so far${first}`);
}

function busy(...text) {
  $("busy").hidden = !text[0];
  fill($("busy"), ...text);
}

/** The card of a call, in the order of its turn. A call that is retried after a crash keeps its place. */
function card(run, iteration, call, action, input) {
  const item = el("div", { class: "call open" }, head(action, "under way"), box(input, "in"));
  const before = run.cards.get(call);
  item.dataset.at = call ? call.split(".")[1] : "";
  const turn = step(run, iteration);
  const next = call && [...turn.querySelectorAll(".call")].find((one) => Number(one.dataset.at) > Number(item.dataset.at));
  if (before) before.replaceWith(item);
  else turn.insertBefore(item, next || null);
  if (call) run.cards.set(call, item);
  return item;
}

/** What is known of the times of an iteration. */
function timed(run, iteration) {
  const number = plain(iteration);
  if (!run.times.has(number)) run.times.set(number, { reply: undefined, waited: 0, calls: [] });
  return run.times.get(number);
}

/** Draws the times: once the events pause, because past ones arrive all at once. */
function drawn(run, wait = SETTLE_MS) {
  const draw = () => { if (open === run && !run.flow) waterfall($("waterfall"), rowsOfLoop(run, href)); };
  clearTimeout(run.drawing);
  if (wait) run.drawing = setTimeout(draw, wait);
  else draw();
}

/** Shows the status of the run in its head. */
function known(run, status) {
  run.status = status;
  run.looked = Date.now();
  state(run, $("about"), status, reopen);
}

/** Looks at the open run now and then: the time since its start grows, and one that has ended is under way again when somebody retries it. */
export async function look() {
  const run = open;
  if (!run.status) return;
  if (!run.over || Date.now() - run.looked < ENDED_MS) return state(run, $("about"), run.status, reopen);
  run.looked = Date.now();
  const status = await get(of(run.id, "status"), { signal: run.stop.signal });
  if (open !== run) return undefined;
  return status.status === run.status.status ? known(run, status) : reopen();
}

/** Asks for the status for the head of the run: once the events pause, and then now and then only. */
function facts(run) {
  if (run.asking) return;
  run.asking = setTimeout(async () => {
    run.asking = 0;
    try {
      const status = await get(of(run.id, "status"), { signal: run.stop.signal });
      if (open === run) known(run, status);
    } catch (why) {
      if (open === run && why instanceof Refused) say(why.message);
    }
  }, run.asked ? FACTS_MS : SETTLE_MS);
  run.asked = true;
}

const show = {
  stream_failed: (run, event) => note(`${event.message.replace(/[.!?]?$/, ".")} Retrying.`),
  run_started(run, event) {
    begin(run, $("about"), event);
    if (!run.flow) pick(run, $("time"), $("trace"));
    facts(run);
  },
  run_resumed(run) {
    arriving(run, null);
    if (!run.flow) settle(run);
  },
  model_asked: (run, event) => busy(`Iteration ${plain(event.iteration)}: the model is asked`),
  model_delta: arriving,
  model_away: (run, event) => { run.away = true; busy(...away(event)); },
  model_replied(run, event) {
    arriving(run, null);
    const usage = event.usage ? ` · ${plain(event.usage.input_tokens)} in, ${plain(event.usage.output_tokens)} out` : "";
    const [, thought, meta] = step(run, event.iteration).children;
    fill(thought, prose(event.thought));
    fill(meta, took(event.duration_ms), event.waited_ms ? ` after a wait of ${took(event.waited_ms)} for its turn` : "", usage);
    Object.assign(timed(run, event.iteration), { reply: event.duration_ms, waited: event.waited_ms || 0 });
    facts(run);
    busy("");
  },
  tool_called: (run, event) => card(run, event.call.iteration, called(event.call), event.action, event.action_input),
  observed(run, event) {
    const item = card(run, event.iteration, called(event.call), event.action || "an unreadable reply", event.action_input);
    item.classList.remove("open");
    item.classList.toggle("bad", !event.success);
    fill(item.firstChild.lastChild, ending(event));
    if (event.run_id) item.append(el("p", { class: "meta of-run" }, "its run: ", el("a", { class: "link id", href: `#${encodeURIComponent(event.run_id)}` }, event.run_id)));
    // The call that ends a run has no observation.
    if (!event.call_status && !(event.success && event.observation === null)) item.append(box(event.observation, "out"));
    const { calls } = timed(run, event.iteration);
    calls[event.call ? event.call.index : calls.length] = event;
    drawn(run);
  },
  steps(run, event) {
    board(run, $("steps"), event, () => reread(run));
    questions($("pause"), event, poster(run), (at) => href(run, at));
    waterfall($("waterfall"), rowsOfSteps(run, event, href));
    facts(run);
  },
  no_steps: (run, event) => nowhere(run, $("steps"), event.message),
  decided: (run, event) => (event.step ? $("trace").append(el("li", {}, el("p", { class: "meta" }, `${event.step}: `, ...decision(event).childNodes))) : event.call ? step(run, event.call.iteration) : $("about")).append(decision(event)),
  progress: (run, event) => step(run, event.iteration).append(el("p", { class: "progress" },
    event.percent === null || event.percent === undefined ? "" : `${Number(plain(event.percent))} % · `, event.message)),
  paused(run) {
    arriving(run, null);
    busy("");
    if (!run.flow) settle(run);
    changed();
  },
  run_ended(run) {
    arriving(run, null);
    busy("");
    stopped($("trace"));
  },
  question_posted: (run) => settle(run),
  retried: (run, event) => $("trace").append(continuation(event)),
  limits_raised: (run, event) => $("trace").append(continuation(event)),
  result: (run, event) => ended(run, event),
};

function ended(run, result) {
  busy("");
  drawn(run, 0);
  $("pause").hidden = true;
  const word = ["complete", "cancelled"].includes(result.termination) ? "" : ` · ${result.termination}`;
  const parts = [el("h2", {}, el("span", { class: `status ${result.status}` }, result.status), word)];
  if (result.result) parts.push(box(result.result.answer, "exact"));
  const by = result.cancelled_by ? ` (by ${result.cancelled_by})` : "";
  if (result.error) parts.push(el("p", {}, prose(`${result.error.code}: ${result.error.message}${by}`)));
  const tokens = `${plain(result.usage.input_tokens)} tokens in, ${plain(result.usage.output_tokens)} out`;
  if (!run.flow) parts.push(el("p", { class: "meta" }, `${count(result.iterations, "iteration")} · ${tokens}`));
  else if (result.usage.input_tokens) parts.push(el("p", { class: "meta" }, tokens));
  fill($("end"), parts);
  $("end").hidden = false;
  asked(result);
  run.asked = false;
  clearTimeout(run.asking);
  run.asking = 0;
  facts(run);
  changed();
}

/** To whom the questions were posted. */
function asked(result) {
  fill($("asked"), (result.asked || []).map(post));
  $("asked").hidden = !result.asked;
}

/** Asks for the status once the events pause: past events arrive all at once, and only the last state counts. */
function settle(run) {
  clearTimeout(run.timer);
  run.timer = setTimeout(async () => {
    try {
      const status = await get(of(run.id, "status"), { signal: run.stop.signal });
      if (open !== run) return;
      known(run, status);
      const pause = status.result.pause;
      if (status.status === "quarantined") {
        busy("");
        aside(run, status.result, reopen);
      }
      asked(status.result);
      // The questions of a workflow come with its steps, each with its own form.
      if (run.flow) return;
      const text = pause ? `${status.pause} ${JSON.stringify(pause)}` : "";
      // What the user is typing there stays.
      if (text !== run.panel && pause) panel(run, pause, status.pause, { settle: () => settle(run), reopen });
      run.panel = text;
      $("pause").hidden = !pause;
    } catch (why) {
      if (open === run && why instanceof Refused) say(why.message);
    }
  }, SETTLE_MS);
}

/** Follows a run again that continues after its end. */
function reopen() {
  enter(open);
  changed();
}
