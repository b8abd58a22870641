// The steps of a workflow: all of them, the items of a loop as a grid, the steps of an item, or one step.

import { graph } from "./graph.js";
import { box, count, el, fill, plain, prose, took, waited, when } from "./text.js";

/** The statuses in the order in which they are shown, and their words. */
const WORDS = new Map([["running", "running"], ["waiting", "waiting"], ["uncertain", "uncertain"], ["failed", "failed"],
  ["completed", "completed"], ["skipped", "skipped"], ["cancelled", "cancelled"], ["pending", "not started"]]);
/** The items of one page of the grid. */
export const PAGE = 200;

const word = (status) => WORDS.get(status) || status;
const badge = (status) => el("span", { class: `status ${status}` }, word(status));
export const href = (run, at) => `#${encodeURIComponent(run.id)}${at ? `/${encodeURIComponent(at)}` : ""}`;

// ---- the way to what is shown -------------------------------------------------------------------

/** The links above an address: of `review.57.1` those of the workflow, `review` and `review.57`. */
function way(run, at) {
  const parts = at.split(".");
  const steps = parts.map((part, n) => [parts.slice(0, n + 1).join("."), n % 2 ? `item ${part}` : part]);
  const links = [["", "All steps"], ...steps].map(([to, text], n, all) => el("li", {}, n + 1 === all.length
    ? el("span", { "aria-current": "location" }, text) : el("a", { href: href(run, to) }, text)));
  return el("nav", { class: "way", "aria-label": "Where this is" }, el("ol", {}, links));
}

// ---- steps --------------------------------------------------------------------------------------

/** How the items of a loop stand, in a bar and in words. */
function progress(items) {
  const ended = items.completed + items.failed + items.skipped + items.cancelled;
  const kinds = ["completed", "failed", "skipped", "cancelled"].map((kind) => [kind, items[kind]]);
  const bar = [...kinds, ["pending", items.total - ended]].filter(([, n]) => n > 0).map(([kind, n]) => {
    const part = el("span", { class: kind });
    part.style.flexGrow = n;
    return part;
  });
  const words = kinds.filter(([kind, n]) => n > 0 || kind === "completed").map(([kind, n]) => `${plain(n)} ${kind}`);
  return [el("span", { class: "parts", "aria-hidden": "true" }, bar),
    el("span", { class: "meta" }, `${count(items.total, "item")}: ${words.join(", ")}`)];
}

function times(step) {
  if (!step.started_at || step.status === "skipped") return [];
  const ms = step.finished_at ? new Date(step.finished_at) - new Date(step.started_at) : -1;
  return [when(step.started_at), ms < 0 ? "" : ` · ${took(ms)}`, waited(step) ? ` · ${waited(step)}` : ""];
}

/** What a step is, and where it leads. `open`: with its input and its output. */
function content(run, step, open) {
  const error = step.error ? [el("p", { class: "fault" }, prose(`${step.error.code}: ${step.error.message}`))] : [];
  if (step.error && step.error.step !== step.at) error.push(el("p", { class: "meta" }, "it failed at ",
    el("a", { class: "link", href: href(run, step.error.step) }, step.error.step)));
  const values = [["Input", step.input, "in"], ["Output", step.output, "out"]].filter(([, value]) => value !== undefined);
  const has = step.status !== "pending" && step.status !== "skipped";
  return [
    el("p", { class: "line" }, el("span", { class: "what" }, has && !open ? el("a", { class: "at", href: href(run, step.at) },
      step.at) : el("span", { class: "at" }, step.at), el("span", { class: "meta" }, step.type)), badge(step.status)),
    el("p", { class: "meta" }, times(step)), step.items ? progress(step.items) : [],
    step.case ? el("p", { class: "meta" }, step.case === "otherwise" ? "otherwise" : `case ${step.case}`) : [], error,
    step.run_id ? el("p", { class: "meta" }, "its run: ", el("a", { class: "link id", href: `#${encodeURIComponent(step.run_id)}` },
      step.run_id)) : [],
    values.map(([name, value, kind]) => el("details", open ? { open: "" } : {}, el("summary", {}, name), box(value, kind))),
  ];
}

/** Shows steps in rows. They are updated in place, so that what has the focus keeps it, and what is unfolded stays so. */
function rows(run, list, steps, open) {
  const known = new Map(Array.from(list.children, (row) => [row.dataset.at, row]));
  steps.forEach((step, n) => {
    const row = known.get(step.at) || el("li", { "data-at": step.at });
    known.delete(step.at);
    const text = JSON.stringify(step);
    if (row.shown !== text) {
      const unfolded = [...row.querySelectorAll("details[open] > summary")].map((name) => name.textContent);
      const focused = row.contains(document.activeElement) ? document.activeElement.textContent : null;
      row.className = `row ${step.status}`;
      fill(row, content(run, step, open));
      for (const name of row.querySelectorAll("summary")) if (unfolded.includes(name.textContent)) name.parentNode.open = true;
      if (focused !== null) [...row.querySelectorAll("a, summary, pre")].find((one) => one.textContent === focused)?.focus();
    }
    row.shown = text;
    if (list.children[n] !== row) list.insertBefore(row, list.children[n] || null);
  });
  known.forEach((row) => row.remove());
}

// ---- items --------------------------------------------------------------------------------------

/** The arrow keys move in the grid, of which one cell at a time is reached with Tab. */
function move(event) {
  const cells = [...event.currentTarget.querySelectorAll("a")];
  const from = cells.indexOf(document.activeElement);
  if (from < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
  const across = cells.filter((cell) => cell.offsetTop === cells[0].offsetTop).length;
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across }[event.key];
  const to = { Home: 0, End: cells.length - 1 }[event.key] ?? (step === undefined ? -1 : from + step);
  if (!cells[to]) return;
  event.preventDefault();
  cells[from].tabIndex = -1;
  cells[to].tabIndex = 0;
  cells[to].focus();
}

/** What an item is called: its label, else its first text, else its first number; then the others of it. */
function label({ label: given, item }) {
  if (given !== undefined) return [plain(given), ""];
  if (item === undefined) return ["", ""];
  if (item === null || typeof item !== "object") return [plain(item), ""];
  const members = Object.entries(item);
  const name = members.find(([, value]) => typeof value === "string" && plain(value) === value) || members[0];
  const rest = members.filter((member) => member !== name).map(([key, value]) => `${key} ${plain(value)}`);
  return [plain(name[1]), rest.join(", ")];
}

/** What came of an item: its verdict in words, or why it failed. */
function verdict({ output, error }) {
  if (error) return error;
  if (output === undefined) return "";
  if (output === null || typeof output !== "object") return plain(output);
  return Object.values(output).map(plain).join(", ");
}

function cellContent(item) {
  const [name, rest] = label(item);
  const came = verdict(item);
  if (!name && !came) return [el("b", {}, plain(item.index))];
  return [el("b", {}, plain(item.index)), el("span", { class: "label" }, name), el("span", { class: "meta rest" }, rest),
    el("span", { class: item.error ? "came fault" : "came" }, came), el("span", { class: "meta word" }, word(item.status))];
}

function cells(run, list, items) {
  const isLabelled = items.rows.some((item) => item.label !== undefined || item.item !== undefined || item.output !== undefined || item.error);
  list.classList.toggle("labelled", isLabelled);
  items.rows.forEach((item, n) => {
    let cell = list.children[n]?.firstChild;
    if (!cell) {
      cell = el("a", { tabindex: n ? "-1" : "0" });
      list.append(el("li", {}, cell));
    }
    const text = `${JSON.stringify(item)} ${run.at} ${isLabelled}`;
    if (cell.shown !== text) {
      cell.href = href(run, `${run.at}.${item.index}`);
      cell.className = item.status;
      cell.title = word(item.status);
      if (isLabelled) cell.removeAttribute("aria-label");
      else cell.setAttribute("aria-label", `Item ${item.index}: ${word(item.status)}`);
      fill(cell, cellContent(item));
    }
    cell.shown = text;
  });
  while (list.children.length > items.rows.length) list.lastChild.remove();
  if (list.children.length && !list.querySelector("[tabindex='0']")) list.querySelector("a").tabIndex = 0;
}

const range = (rows, total) => (rows.length ? `items ${plain(rows[0].index)} to ${plain(rows[rows.length - 1].index)} of ${plain(total)}`
  : "no such items");

/** A page of the items of a loop, with what chooses them. `again` asks for others. */
function grid(run, part, items, again) {
  if (!part.firstChild) {
    const go = (from, status) => { run.from = from; run.only = status; again(); };
    const to = el("input", { type: "number", min: "0", step: "1", inputmode: "numeric" });
    const jump = el("form", { class: "jump", on: (event) => {
      event.preventDefault();
      const index = Number(to.value);
      const last = part.items.total - 1;
      if (to.value === "" || !Number.isInteger(index) || index < 0 || index > last) return to.setCustomValidity(`0 to ${last}`) || to.reportValidity();
      location.hash = href(run, `${run.at}.${index}`);
    } }, el("label", {}, "Item", to), el("button", {}, "Show"));
    to.addEventListener("input", () => to.setCustomValidity(""));
    const list = el("ol", { class: "grid", "aria-label": "Items" });
    list.addEventListener("keydown", move);
    const previous = el("button", { type: "button", on: () => go(Math.max(0, run.from - PAGE), run.only) }, "Previous");
    const next = el("button", { type: "button", on: () => go(part.items.next, run.only) }, "Next");
    const chips = el("div", { class: "chips", role: "group", "aria-label": "Only the items that are" });
    part.go = go;
    fill(part, chips, list, el("div", { class: "pager" }, previous, el("span", { class: "meta", role: "status" }), next, jump));
  }
  part.items = items;
  const [chips, list, pager] = part.children;
  const kinds = [["", `all ${plain(items.total)}`], ...[...WORDS.keys()].filter((kind) => items.counts[kind])
    .map((kind) => [kind, `${plain(items.counts[kind])} ${word(kind)}`])];
  const chip = (kind) => [...chips.children].find((one) => one.dataset.kind === kind);
  for (const one of [...chips.children]) if (!kinds.some(([kind]) => kind === one.dataset.kind)) one.remove();
  kinds.forEach(([kind, text], n) => {
    const one = chip(kind) || el("button", { type: "button", class: kind, "data-kind": kind, on: () => part.go(0, kind) });
    one.setAttribute("aria-pressed", String((run.only || "") === kind));
    if (one.textContent !== text) fill(one, text);
    if (chips.children[n] !== one) chips.insertBefore(one, chips.children[n] || null);
  });
  cells(run, list, items);
  const [previous, where, next] = pager.children;
  previous.disabled = !run.from || Boolean(run.only);
  next.disabled = items.next === undefined;
  const text = range(items.rows, items.total);
  if (where.textContent !== text) fill(where, text);
  pager.hidden = items.total <= PAGE && !run.only;
}

// ---- all of it ----------------------------------------------------------------------------------

/** Shows the steps at the address of a run. `again` asks for other items of a loop. */
export function board(run, section, view, again) {
  if (section.shown !== `${run.id} ${run.at}`) {
    const list = el("ol", { class: "rows" });
    const part = el("div", { class: "items" });
    const heads = run.at ? [way(run, run.at)] : [];
    fill(section, el("h2", { class: "title" }, "Steps"), heads, el("p", { class: "where", hidden: "" }), el("div", { class: "picture", hidden: "" }), list, part);
    section.shown = `${run.id} ${run.at}`;
  }
  section.hidden = false;
  const where = section.querySelector(".where");
  where.hidden = !view.item;
  const stands = `${view.item} ${view.item_label ?? ""}`;
  if (view.item && where.shown !== stands) {
    fill(where, view.item_label === undefined ? "This item is " : `${plain(view.item_label)}: this item is `, badge(view.item));
  }
  where.shown = stands;
  const is = view.steps.length === 1 && view.steps[0].at === run.at;
  graph(run, section.querySelector(".picture"), view, (at) => href(run, at));
  rows(run, section.querySelector(".rows"), view.steps, is);
  const part = section.querySelector(".items");
  part.hidden = !view.items;
  if (view.items) grid(run, part, view.items, again);
}

/** There is no such step. */
export function nowhere(run, section, message) {
  section.hidden = false;
  section.shown = "";
  fill(section, el("h2", { class: "title" }, "Steps"), way(run, run.at), el("p", {}, message));
}
