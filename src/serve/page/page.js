// The page of `loopctl serve`: lists runs, follows one, and sends decisions.

import { answer, button, forms, questions, titles } from "./decide.js";
import { PAGE, board, href, nowhere } from "./flow.js";
import { Refused, ask, because, get, hasToken, keepToken, of, stream, whenWanted } from "./server.js";
import { away, box, called, continuation, count, decision, el, ending, fill, head, lay, plain, stopped, took } from "./text.js";
import { pick, turn } from "./time.js";

const $ = (id) => document.getElementById(id);
const EVERY_MS = 2000;
const MOST = 500;
const LONGEST = 4000; // characters that are shown of a reply that is arriving
const say = (text) => { if ($("said").textContent !== text) fill($("said"), text); };

/** Asks for a token; the error says what was wrong with the last one. */
function wantToken() {
  const why = new Refused(hasToken() ? "The server does not know this token." : "");
  if (!$("token").hidden) return new Refused($("said").textContent);
  say(why.message);
  keepToken(null);
  leave();
  $("token").hidden = false;
  $("main").hidden = $("forget").hidden = true;
  $("bearer").focus();
  return why;
}

// ---- the lists --------------------------------------------------------------------------------

let limit = 50;
let due = 0;

async function look() {
  clearTimeout(due);
  try {
    if (!document.hidden && $("token").hidden) {
      const chosen = $("filter").value;
      const [waiting, runs] = await Promise.all([
        get("agents?status=paused&limit=50"),
        get(`agents?limit=${limit}${chosen ? `&status=${chosen}` : ""}`),
      ]);
      lay($("waiting"), waiting.agents);
      lay($("runs"), runs.agents);
      $("waits").hidden = !waiting.agents.length;
      $("none").hidden = runs.agents.length > 0;
      $("set-aside").hidden = chosen !== "quarantined" || !runs.agents.length;
      $("more").hidden = !runs.next_cursor || limit >= MOST;
      $("main").hidden = false;
      $("forget").hidden = !hasToken();
      mark();
      const many = waiting.agents.length + (waiting.next_cursor ? "+" : "");
      document.title = waiting.agents.length ? `(${many}) loopctl` : "loopctl";
      say("");
    }
  } catch (why) {
    say(because(why, "retrying."));
  }
  clearTimeout(due);
  due = setTimeout(look, EVERY_MS);
}

function mark() {
  for (const item of document.querySelectorAll("nav li")) {
    if (item.dataset.run === open.id) item.firstChild.setAttribute("aria-current", "page");
    else item.firstChild.removeAttribute("aria-current");
  }
}

// ---- a run ------------------------------------------------------------------------------------

let open = { id: "" };

function leave() {
  open.stop?.abort();
  open = { id: "" };
  $("run").hidden = true;
  $("hint").hidden = false;
  document.body.classList.remove("one");
}

/** The run that is shown, and the address of its step or item. */
function where() {
  // An address that was typed by hand may not be valid.
  try { return location.hash.slice(1).split("/").map(decodeURIComponent); } catch { return [""]; }
}

/** Shows other steps or another iteration of the run that is shown, or another run. */
function move() {
  const [id, at = ""] = where();
  if (id !== open.id || open.flow === undefined) return enter();
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

function enter() {
  leave();
  const [id, at] = where();
  mark();
  if (!id || !$("token").hidden) return;
  open = { id, at: at || "", from: 0, only: "", last: "", stop: new AbortController(), cards: new Map(), steps: new Map(), panel: "", desk: {}, timer: 0 };
  for (const part of ["about", "trace", "pause", "end", "steps", "time"]) $(part).replaceChildren();
  $("steps").shown = "";
  $("steps").hidden = $("time").hidden = $("pause").hidden = $("end").hidden = $("busy").hidden = $("hint").hidden = true;
  $("run").hidden = false;
  document.body.classList.add("one");
  mark();
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
      if (why instanceof Refused && !why.passes) return say(why.message);
      say("The server can't be reached; retrying.");
    }
    if (!over) await new Promise((go) => setTimeout(go, 1000));
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

const show = {
  stream_failed: (run, event) => say(`${event.message} Retrying.`),
  run_started(run, event) {
    // A workflow has no iterations.
    run.flow = !event.max_iterations;
    fill($("about"), el("p", { class: "meta id" }, event.run_id), el("h1", {}, event.loop_name),
      el("p", { class: "objective" }, event.objective), event.max_iterations ? el("p", { class: "meta" }, `model ${event.model}`) : [],
      event.fork_of ? el("p", { class: "meta" }, `fork of ${event.fork_of.run_id} at iteration ${plain(event.fork_of.iteration)}`) : []);
    if (!run.flow) pick(run, $("time"), $("trace"));
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
    fill(thought, event.thought);
    fill(meta, took(event.duration_ms), usage);
    busy("");
  },
  tool_called: (run, event) => card(run, event.call.iteration, called(event.call), event.action, event.action_input),
  observed(run, event) {
    const item = card(run, event.iteration, called(event.call), event.action || "an unreadable reply", event.action_input);
    item.classList.remove("open");
    item.classList.toggle("bad", !event.success);
    fill(item.firstChild.lastChild, ending(event));
    if (!event.call_status) item.append(box(event.observation, "out"));
  },
  steps(run, event) {
    board(run, $("steps"), event, () => reread(run));
    questions($("pause"), event, poster(run), (at) => href(run, at));
  },
  no_steps: (run, event) => nowhere(run, $("steps"), event.message),
  decided: (run, event) => (event.step ? $("trace").append(el("li", {}, el("p", { class: "meta" }, `${event.step}: `, ...decision(event).childNodes))) : event.call ? step(run, event.call.iteration) : $("about")).append(decision(event)),
  progress: (run, event) => step(run, event.iteration).append(el("p", { class: "progress" },
    event.percent === null || event.percent === undefined ? "" : `${plain(event.percent)} % · `, event.message)),
  paused(run) {
    arriving(run, null);
    busy("");
    if (!run.flow) settle(run);
    look();
  },
  run_ended(run) {
    arriving(run, null);
    busy("");
    stopped($("trace"));
  },
  retried: (run, event) => $("trace").append(continuation(event)),
  limits_raised: (run, event) => $("trace").append(continuation(event)),
  result: (run, event) => ended(run, event),
};

function ended(run, result) {
  busy("");
  $("pause").hidden = true;
  const word = ["complete", "cancelled"].includes(result.termination) ? "" : ` · ${result.termination}`;
  const parts = [el("h2", {}, el("span", { class: `status ${result.status}` }, result.status), word)];
  if (result.result) parts.push(box(result.result.answer, "exact"));
  const by = result.cancelled_by ? ` (by ${result.cancelled_by})` : "";
  if (result.error) parts.push(el("p", {}, `${result.error.code}: ${result.error.message}${by}`));
  if (result.termination === "model_error" && result.error?.retryable) parts.push(again(run));
  const tokens = `${plain(result.usage.input_tokens)} tokens in, ${plain(result.usage.output_tokens)} out`;
  if (!run.flow) parts.push(el("p", { class: "meta" }, `${count(result.iterations, "iteration")} · ${tokens}`));
  else if (result.usage.input_tokens) parts.push(el("p", { class: "meta" }, tokens));
  fill($("end"), parts);
  $("end").hidden = false;
  look();
}

// ---- what a human decides ---------------------------------------------------------------------

/** Asks for the status once the events pause: past events arrive all at once, and only the last state counts. */
function settle(run) {
  clearTimeout(run.timer);
  run.timer = setTimeout(async () => {
    try {
      const status = await get(of(run.id, "status"), { signal: run.stop.signal });
      if (open !== run) return;
      const pause = status.result.pause;
      if (status.status === "quarantined") aside(run, status.result);
      const text = pause ? `${status.pause} ${JSON.stringify(pause)}` : "";
      // What the user is typing there stays.
      if (text !== run.panel && pause) panel(run, pause, status.pause);
      run.panel = text;
      $("pause").hidden = !pause;
    } catch (why) {
      if (open === run && why instanceof Refused) say(why.message);
    }
  }, 20);
}

/** A run that no server takes up, and the button that resumes it. */
function aside(run, result) {
  busy("");
  fill($("end"), el("h2", {}, el("span", { class: "status quarantined" }, "quarantined")),
    el("p", {}, result.error.message), goOn(run, "Resume", "resume?async=true", '{"resume":true}'));
  $("end").hidden = false;
}

/** The button that retries a run whose model could not be reached. */
const again = (run) => goOn(run, "Retry", "retry?async=true", "{}");

const goOn = (run, text, route, body) => el("div", { class: "buttons" }, button(text, "first", async (event) => {
  event.target.disabled = true;
  try {
    await ask(of(run.id, route), { method: "POST", body });
    enter();
    look();
  } catch (why) {
    say(because(why));
    event.target.disabled = false;
  }
}));

/** Sends decisions about this pause: the server refuses them once there is a newer pause. */
function sender(run, number, fault) {
  const enable = (able) => $("pause").querySelectorAll("button").forEach((one) => { one.disabled = !able; });
  const send = async (body) => {
    enable(false);
    fill(fault, "");
    try {
      await ask(of(run.id, "resume?async=true"), { method: "POST", body: `{${body},"pause":${plain(number)}}` });
      say("Your decision was taken.");
      look();
    } catch (why) {
      fill(fault, because(why));
      enable(true);
      if (why.code === "document_changed") {
        fault.append(button("With the new text", "", () => send(`${body},"new_document":true`)),
          button("With the recorded text", "", () => send(`${body},"new_document":false`)));
      }
    }
    run.panel = "";
    settle(run);
  };
  return send;
}

/** Sends a decision about a step. Another decision of the run may be under way: then it is sent again. */
const poster = (run) => async (kind, at, body) => {
  const path = { approval: `approvals/${encodeURIComponent(run.id)}/${encodeURIComponent(at)}`,
    form: `forms/${encodeURIComponent(run.id)}/${encodeURIComponent(at)}/submit`, resume: of(run.id, "resume") }[kind];
  for (let tries = 0; ; tries += 1) {
    try {
      await ask(`${path}?async=true`, { method: "POST", body });
      say("Your decision was taken.");
      look();
      return null;
    } catch (why) {
      const other = why.code === "run_driven";
      if (other && tries < 20) await new Promise((go) => setTimeout(go, 250));
      else return other ? "Other steps of the run are under way: try again when they have ended or wait." : because(why);
    }
  }
};

/** Shows what to decide. Each of several calls has its own form, and the others keep what was typed. */
function panel(run, pause, number) {
  const calls = pause.calls || (pause.call ? [pause.call] : []);
  const key = (call) => `${called(call)} ${call.hash} ${JSON.stringify(call.approval || "")}`;
  const { desk } = run;
  if (desk.number !== number || calls.some((call) => !desk.kept.has(key(call)))) {
    const fault = el("p", { class: "fault", role: "alert" });
    const send = sender(run, number, fault);
    const form = forms.get(pause.kind);
    const kept = new Map(form ? calls.map((call) => [key(call), form(call, send, fault)]) : []);
    run.desk = { number, kept };
    return fill($("pause"), el("h2", {}, titles[pause.kind] || pause.kind), el("p", { class: "question" }, pause.question),
      pause.context ? el("p", { class: "context" }, pause.context) : [],
      form ? [...kept.values()] : pause.kind === "model_error" ? again(run) : answer(pause, send, fault), fault);
  }
  const still = new Set(calls.map(key));
  desk.kept.forEach((group, call) => { if (!still.has(call)) group.remove(); });
  fill($("pause").querySelector(".question"), pause.question);
  $("pause").querySelectorAll("button").forEach((one) => { one.disabled = false; });
}

// ---- begin ------------------------------------------------------------------------------------

$("token").addEventListener("submit", (event) => {
  event.preventDefault();
  keepToken($("bearer").value.trim());
  $("bearer").value = "";
  $("token").hidden = true;
  say("");
  look();
  enter();
});
$("forget").addEventListener("click", () => { keepToken(null); say(""); wantToken(); });
$("filter").addEventListener("change", () => { limit = 50; look(); });
$("more").addEventListener("click", () => { limit = Math.min(limit * 2, MOST); look(); });
$("release").addEventListener("click", () => ask("agents/release", { method: "POST", body: "{}" }).then(look, (why) => say(because(why))));
addEventListener("hashchange", move);
document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
whenWanted(wantToken);
look();
enter();
