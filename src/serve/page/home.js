// What an operator looks at first: what waits, what failed, what is spent, and what is queued.

import { counted, lay } from "./list.js";
import { asked, usage } from "./place.js";
import { get, withToken } from "./server.js";
import { changed } from "./said.js";
import { amount, count, el, fill, plain, refill } from "./text.js";
import { ago, dollars } from "./units.js";

const $ = (id) => document.getElementById(id);
/** The runs of a short list. */
const WAITING_RUNS = 8;
const FAILED_RUNS = 4;
/** The most runs that are counted for a figure. */
const COUNTED_RUNS = 100;
/** How old a figure may be. */
const FIGURE_AGE_MS = 15000;
/** From which share of a spending limit on it is marked, in hundredths. */
const NEAR_LIMIT = 80;

let figures = null;
let asking = null;

const number = (view) => (view.next_cursor ? `${view.agents.length}+` : String(view.agents.length));

async function figured() {
  const [failed, today, running, ready] = await Promise.all([
    get(asked({ status: "failed", ended_since: "yesterday" }, COUNTED_RUNS)),
    get(usage({ since: "today" })),
    get(asked({ status: "running" }, COUNTED_RUNS)),
    // A server that is not ready says why in another answer.
    get("readyz").catch(() => ({})),
  ]);
  return { at: Date.now(), failed, today, running, ready };
}

/** The figures as they are known. Old ones are asked for again, and the lists do not wait for them. */
function known() {
  if (!asking && (!figures || Date.now() - figures.at >= FIGURE_AGE_MS)) {
    const mine = figured().catch(() => null);
    asking = mine;
    mine.then((now) => {
      // Figures that come for a token that was forgotten since are not shown to the next one.
      if (asking !== mine) return;
      asking = null;
      if (!now) return;
      figures = now;
      changed();
    });
  }
  return figures;
}
withToken(() => { figures = asking = null; });

function tile(kind, href, name, value, note) {
  return el("li", { class: kind }, el("a", { href }, el("span", { class: "meta" }, name), el("b", {}, value), el("span", { class: "meta" }, note)));
}

/** The spending limit that is used most. */
function limited(limits) {
  const most = limits?.[0];
  if (!most) return [];
  const used = Math.round(amount(most.used) * 100);
  const kind = used >= 100 ? "failed" : used >= NEAR_LIMIT ? "paused" : "";
  const notes = [
    most.most_tokens === undefined ? "" : `${count(most.tokens, "token")} of ${Number(plain(most.most_tokens)).toLocaleString("en")}`,
    most.most_usd === undefined ? "" : `${dollars(most.cost_usd)} of ${dollars(most.most_usd)}`,
  ];
  const note = notes.filter(Boolean).join(", ");
  return [tile(kind, "#/runs?since=today", `Limit of ${most.of}, ${most.every}`, `${used} %`, [note, most.until ? `, until ${most.until.slice(0, 16).replace("T", " ")} UTC` : ""].join(""))];
}

function tiles({ failed, today, running }, waiting) {
  const oldest = waiting.next_cursor ? null : waiting.agents[waiting.agents.length - 1];
  const queued = running.agents.filter((run) => run.queued).length;
  const newest = failed.agents[0];
  const { total, left_out: left } = today;
  const unknown = amount(total.unpriced_runs) + amount(total.unknown_runs);
  return [
    tile(waiting.agents.length ? "paused" : "", "#/runs?waiting=true", "Waiting for people", number(waiting),
      oldest ? ["the oldest came ", ago(oldest.updated_at)] : waiting.agents.length ? "the newest are counted" : "nothing waits"),
    tile(failed.agents.length ? "failed" : "", "#/runs?status=failed&ended_since=yesterday", "Failed since yesterday", number(failed),
      newest ? ["the last one that started ended ", ago(newest.updated_at)] : "nothing failed"),
    tile("", "#/runs?since=today", "Cost of today's runs", `${left.older_runs ? "over " : ""}${dollars(total.cost_usd)}`,
      [count(total.runs, "run"), " started today", unknown ? `, ${unknown} of unknown price` : ""].join("")),
    ...limited(today.limits),
    tile("", "#/runs?status=running", "Under way", `${running.agents.length - queued}${running.next_cursor ? "+" : ""}`,
      queued ? `${queued} more in the queue` : "the queue is empty"),
  ];
}

/** That the folder is served as it was, because it has a fault. */
function fault(view) {
  const since = view?.ready.reload_failed_since || "";
  const part = $("fault");
  if (part.shown === since) return;
  part.shown = since;
  part.hidden = !since;
  fill(part, since ? ["The folder has a fault since ", ago(since), ", and is served as it was before. The log says which."] : []);
}

/** Shows what waits and what failed, and gives the ids of the runs that are shown. */
export async function home(isHome, isFiltered, isCurrent) {
  const waiting = await get(asked({ waiting: "true" }, isHome ? COUNTED_RUNS : WAITING_RUNS));
  const shown = new Set();
  const facts = { shown, waiting: number(waiting), waits: waiting.agents.length > 0 };
  if (!isCurrent()) return facts;
  const view = isHome ? known() : null;
  const waits = isFiltered ? [] : waiting.agents.slice(0, WAITING_RUNS);
  const waitsToo = new Set(waiting.agents.map((run) => run.agent_run_id));
  const failed = view ? view.failed.agents.filter((run) => !waitsToo.has(run.agent_run_id)).slice(0, FAILED_RUNS) : [];
  for (const run of [...waits, ...failed]) shown.add(run.agent_run_id);
  lay($("waiting"), waits);
  lay($("failed"), failed);
  $("waits").hidden = !waits.length;
  $("waits-more").hidden = waiting.agents.length <= waits.length && !waiting.next_cursor;
  $("fails").hidden = !failed.length;
  $("fails-more").hidden = !view || view.failed.agents.length <= failed.length && !view.failed.next_cursor;
  $("tiles").hidden = !view;
  if (isHome) fault(view);
  if (view) {
    const text = tiles(view, waiting);
    const key = text.map((one) => one.textContent).join("|");
    if ($("tiles").shown !== key) refill($("tiles"), text);
    $("tiles").shown = key;
  }
  counted(view ? { running: number(view.running) } : {});
  return facts;
}
