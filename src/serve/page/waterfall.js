// Where the time of a run went: a bar for each reply of its model, each wait of its requests for their turn, each call of a tool and each
// wait for a person, on one axis.
// Long waits are cut out of the axis, so that the work between them can be seen.

import { count, el, fill, refill, took } from "./text.js";
import { long } from "./units.js";

/** The most rows that are shown. */
const MOST_ROWS = 120;
/** Up to this number of rows, they are shown unfolded. */
const OPEN_ROWS = 16;
/** A gap is shown as this share of the time of the work, if it is longer. */
const GAP_SHARE = 0.06;
const WORDS = { model: "model", line: "waits for a turn", tool: "tools", people: "people" };

/** The times in which something was under way, each one only once, in their order. */
function busy(rows) {
  const times = rows.filter((row) => row.kind !== "people" && row.kind !== "line").map(({ from, to }) => ({ from, to })).sort((a, b) => a.from - b.from);
  const merged = [];
  for (const time of times) {
    const last = merged[merged.length - 1];
    if (last && time.from <= last.to) last.to = Math.max(last.to, time.to);
    else merged.push({ ...time });
  }
  return merged;
}

/** The axis: from a moment to its place, 0 to 1. Gaps longer than a share of the work are cut: shown shorter, with a mark. */
function axis(rows) {
  const pieces = busy(rows);
  const all = { from: Math.min(...rows.map((row) => row.from)), to: Math.max(...rows.map((row) => row.to)) };
  const work = Math.max(1, pieces.reduce((sum, { from, to }) => sum + to - from, 0));
  // Without work there is nothing that the waits would hide.
  const gap = (ms) => (pieces.length ? Math.min(ms, work * GAP_SHARE) : ms);
  const cuts = [];
  const marks = [{ at: all.from, place: 0 }];
  let place = 0;
  for (const piece of [...pieces, { from: all.to, to: all.to }]) {
    const before = marks[marks.length - 1].at;
    const wait = Math.max(0, piece.from - before);
    const drawn = gap(wait);
    if (wait > drawn) cuts.push({ middle: place + drawn / 2, ms: wait });
    place += drawn;
    marks.push({ at: piece.from, place });
    place += piece.to - piece.from;
    marks.push({ at: piece.to, place });
  }
  const whole = Math.max(1, place);
  const at = (moment) => {
    const next = Math.max(1, marks.findIndex((mark) => mark.at >= moment));
    const [a, b] = [marks[next - 1], marks[next]];
    const share = b.at > a.at ? (moment - a.at) / (b.at - a.at) : 0;
    return (a.place + share * (b.place - a.place)) / whole;
  };
  return { at, cuts: cuts.map(({ middle, ms }) => ({ at: middle / whole, ms })) };
}

/** The marks where the axis is cut, over all lanes: two lines with nothing between them. */
function breaks(cuts) {
  const stops = cuts.flatMap(({ at }) => {
    const x = (px) => `calc(${at * 100}% + ${px}px)`;
    return [`transparent ${x(-3)}`, `var(--soft) ${x(-3)} ${x(-2)}`, `var(--page) ${x(-2)} ${x(2)}`, `var(--soft) ${x(2)} ${x(3)}`, `transparent ${x(3)}`];
  });
  return stops.length ? `linear-gradient(90deg, ${stops.join(", ")})` : "none";
}

function sums(rows) {
  const total = (kind) => rows.filter((row) => row.kind === kind).reduce((sum, { from, to }) => sum + to - from, 0);
  const parts = Object.entries(WORDS).map(([kind, word]) => [word, total(kind), rows.some((row) => row.kind === kind)]);
  return parts.filter(([, , has]) => has).map(([word, ms]) => `${word} ${ms < 1000 ? took(ms) : long(ms)}`).join(", ");
}

function line(row, place) {
  const bar = el("span", { class: `bar-of ${row.kind} ${row.bad ? "bad" : ""}` });
  const from = place(row.from);
  bar.style.left = `${from * 100}%`;
  bar.style.width = `max(3px, ${(place(row.to) - from) * 100}%)`;
  return el("li", {}, el("a", { href: row.href }, row.name), el("span", { class: "lane", "aria-hidden": "true" }, bar),
    el("span", { class: "meta" }, row.open ? "under way" : long(row.to - row.from)));
}

/** Shows rows: `{ kind, name, href, from, to, open, bad }`, the times in milliseconds. */
export function waterfall(section, rows) {
  const known = rows.filter(({ from, to }) => Number.isFinite(from) && Number.isFinite(to) && to >= from);
  section.hidden = known.length < 2;
  if (section.hidden) return;
  const shown = known.slice(0, MOST_ROWS);
  const { at, cuts } = axis(shown);
  const list = shown.map((row) => line(row, at));
  const left = known.length - shown.length;
  const waits = cuts.reduce((sum, { ms }) => sum + ms, 0);
  const cut = waits ? el("p", { class: "meta cuts" }, `‖ marks where a wait is drawn shorter: ${long(waits)} in all.`) : [];
  const note = left > 0 ? el("p", { class: "meta" }, `The first ${count(shown.length, "row")}; ${left} more are not shown.`) : [];
  const details = section.querySelector("details");
  if (!details) {
    fill(section, el("details", shown.length <= OPEN_ROWS ? { open: "" } : {}, el("summary", {}), el("ol", {}), el("div", {})));
  }
  const [summary, rowsOf, more] = section.firstChild.children;
  fill(summary, `Time: ${sums(known)}`);
  refill(rowsOf, list);
  rowsOf.style.setProperty("--breaks", breaks(cuts));
  fill(more, cut, note);
}

/** The rows of the iterations of a loop: from what was heard of its replies and its calls. */
export function rowsOfLoop(run, href) {
  const rows = [];
  for (const [iteration, { reply, waited, calls }] of run.times) {
    const at = calls[0] && Date.parse(calls[0].timestamp);
    if (!at) continue;
    if (waited) rows.push({ kind: "line", name: `${iteration} wait`, href: href(run, iteration), from: at - reply - waited, to: at - reply });
    if (reply !== undefined) rows.push({ kind: "model", name: `${iteration} reply`, href: href(run, iteration), from: at - reply, to: at });
    for (const call of calls) {
      const asked = Date.parse(call.timestamp);
      const decided = call.decided_at && Date.parse(call.decided_at);
      const made = call.called_at && Date.parse(call.called_at);
      if (decided) rows.push({ kind: "people", name: `${iteration} decision`, href: href(run, iteration), from: asked, to: decided });
      if (made && !call.call_status) {
        rows.push({ kind: "tool", name: `${iteration} ${call.action || ""}`, href: href(run, iteration), from: made, to: made + call.duration_ms, bad: !call.success });
      }
    }
  }
  return rows;
}

/** The rows of the steps of a workflow that are shown. */
export function rowsOfSteps(run, view, href) {
  const people = ["PbotApproval", "PbotForm"];
  return view.steps.filter((step) => step.started_at && step.status !== "skipped").map((step) => ({
    kind: people.includes(step.type) || step.status === "waiting" ? "people" : step.run_id ? "model" : "tool", name: `${step.at} ${step.type}`, href: href(run, step.at),
    from: Date.parse(step.started_at), to: step.finished_at ? Date.parse(step.finished_at) : Date.now(), open: !step.finished_at,
    bad: step.status === "failed",
  }));
}
