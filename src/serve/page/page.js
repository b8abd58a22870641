// The page of `loopctl serve`: shows the view that the address names, and looks again now and then.

import { home } from "./home.js";
import { back, choose, list, mark, wanted } from "./list.js";
import { read } from "./place.js";
import { loops } from "./loops.js";
import { workers } from "./workers.js";
import { audit } from "./audit.js";
import { enter, is, leave, look as lookAtRun, move } from "./run.js";
import { Refused, ask, because, hasToken, keepToken, whenWanted } from "./server.js";
import { CHANGED, note, say, said } from "./said.js";
import { count, fill } from "./text.js";

const $ = (id) => document.getElementById(id);
/** How often the lists are looked up. */
const EVERY_MS = 2000;

// ---- the token --------------------------------------------------------------------------------

/** Asks for a token; the error says what was wrong with the last one. */
function wantToken(fault = "") {
  const why = new Refused(hasToken() ? fault : "");
  if (!$("token").hidden) return new Refused(said());
  say(why.message);
  keepToken(null);
  leave();
  $("token").hidden = false;
  $("main").hidden = $("forget").hidden = $("views").hidden = true;
  $("bearer").focus();
  return why;
}

$("token").addEventListener("submit", (event) => {
  event.preventDefault();
  keepToken($("bearer").value.trim());
  $("bearer").value = "";
  $("token").hidden = true;
  say("");
  show();
  look();
});
$("forget").addEventListener("click", () => { keepToken(null); say(""); wantToken(); });

// ---- the lists --------------------------------------------------------------------------------

let due = 0;
let looks = 0;

/** The list that the server refuses for what is asked: no run, and why. Who may ask, and how often, is no matter of the list. */
function refused(why) {
  if (why.status !== 400 && why.status !== 404 && why.status !== 422) throw why;
  return { agents: [], fault: why.message };
}

async function look() {
  clearTimeout(due);
  looks += 1;
  const mine = looks;
  try {
    if (!document.hidden && $("token").hidden) {
      const { view } = read();
      const isFiltered = view === "runs" || view === "run" && back() !== "#";
      const [{ shown, waiting, waits }, runs] = await Promise.all([home(view === "home", isFiltered, () => mine === looks),
        OTHERS[view] ? null : wanted().catch(refused)]);
      // Meanwhile something else may have been asked for.
      if (mine !== looks) return;
      if (runs) list(runs, shown);
      $("main").hidden = $("views").hidden = false;
      $("forget").hidden = !hasToken();
      mark(read().id);
      // Why a run can't be read is said where it is shown.
      if (view === "run") lookAtRun().catch(() => {});
      if (view === "workers") workers($("other"));
      if (view === "audit") audit($("other"), "", read().filters);
      document.title = waits ? `(${waiting}) loopctl` : "loopctl";
      note("");
    }
  } catch (why) {
    note(because(why, "retrying."));
    // Who has a token that may not read can give another one.
    $("forget").hidden = !hasToken();
  }
  clearTimeout(due);
  due = setTimeout(look, EVERY_MS);
}

// ---- the views --------------------------------------------------------------------------------

const NAMES = { home: "Home", runs: "Runs", run: "A run", loops: "Loops and workflows", workers: "Workers", audit: "What was done" };
const OTHERS = { loops, workers, audit };

/** Shows the view that the address names. */
function show() {
  const place = read();
  if (!OTHERS[place.view]) choose(place);
  for (const link of $("views").children) {
    if (link.dataset.view === place.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.body.dataset.view = place.view;
  document.querySelector(".back").href = back();
  fill($("heading"), NAMES[place.view]);
  const other = OTHERS[place.view];
  $("heading").className = other && !place.name ? "" : "unseen";
  $("lists").hidden = Boolean(other);
  $("other").hidden = !other;
  if (other && $("token").hidden) other($("other"), place.name, place.filters);
  mark(place.id);
  if (place.view !== "run") return leave();
  return $("token").hidden ? enter(place) : undefined;
}

/** Shows another view, or another part of the run that is shown. */
function go() {
  const place = read();
  if (place.view === "run" && is.open(place.id)) return move(place);
  const was = document.body.dataset.view;
  show();
  look();
  // What has the focus in the lists keeps it; from a run the focus comes back to its row.
  if (was === "run" && place.view !== "run") (document.querySelector(`.runs li[data-run="${CSS.escape(is.last)}"] a`) || $("main")).focus();
  return undefined;
}

/** Escape leaves a run, `/` goes to the search; not while something is typed. */
function key(event) {
  const types = event.target.closest?.("input, textarea, select, dialog");
  if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
  if (event.key === "Escape" && types?.matches("input, textarea")) types.blur();
  else if (event.key === "Escape" && !types && read().view === "run") location.hash = back();
  else if (event.key === "/" && !types && $("token").hidden) {
    event.preventDefault();
    if (!$("search").checkVisibility()) location.hash = back();
    $("search").focus();
  }
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  (document.body.dataset.view === "run" ? $("run") : $("main")).focus();
});
$("release").addEventListener("click", () => ask("agents/release", { method: "POST", body: "{}" })
  .then(async (answer) => { say(`${count((await answer.json()).released.length, "run")} released.`); look(); }).catch((why) => say(because(why))));
addEventListener("hashchange", go);
addEventListener("keydown", key);
document.addEventListener(CHANGED, look);
document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
whenWanted(wantToken);
show();
look();
