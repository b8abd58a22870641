// A workflow as a picture: its steps as boxes in their order, loops around the steps that they repeat, branches beside each other.

import { Refused, get, of } from "./server.js";
import { count, el, fill, plain } from "./text.js";

/** The most boxes that are drawn. */
const MOST_BOXES = 120;
/** From this number of steps on, a picture says more than the list. */
const LEAST_STEPS = 2;
const WORDS = { pending: "not started", waiting: "waits", uncertain: "uncertain" };

/** A status in a word; one that is expected takes no room. */
function mark(status) {
  if (!status) return [];
  return el("span", { class: "word" }, status === "completed" ? [el("span", { "aria-hidden": "true" }, "✓"), el("span", { class: "unseen" }, "completed")] : WORDS[status] || status);
}

/** What is drawn of the steps: how many boxes are left. */
class Drawing {
  constructor(states, link) {
    Object.assign(this, { states, link, left: MOST_BOXES, over: 0 });
  }

  box(step, isTop) {
    const state = isTop ? this.states.get(step.name) : undefined;
    const status = state?.status || "";
    const has = state && status !== "pending" && status !== "skipped";
    const name = el("span", { class: "at" }, step.name.split(".").pop());
    const body = [name, el("span", { class: "meta" }, step.type), mark(status)];
    const kind = `box ${status || "plain"}`;
    const box = has ? el("a", { class: kind, href: this.link(state.at) }, body) : el("span", { class: kind }, body);
    if (!step.steps) return box;
    const items = state?.items;
    const note = items ? `${count(items.total, "item")}: ${plain(items.completed)} completed${items.failed ? `, ${plain(items.failed)} failed` : ""}` : `for each of ${step.items}`;
    return el("div", { class: `loop-of ${status}` }, el("div", { class: "head" }, box, el("span", { class: "meta" }, `↻ ${note}`)), this.list(step.steps, false),
      step.on_failure ? this.afterFailure(step.on_failure, false) : []);
  }

  /** The steps that run when those before them have failed. */
  afterFailure(steps, isTop) {
    return el("div", { class: "after-failure" }, el("span", { class: "meta" }, "on failure"), this.list(steps, isTop));
  }

  /** A step with what runs in its place. */
  branch(step, isTop) {
    if (this.left <= 0) { this.over += 1; return []; }
    this.left -= 1;
    if (step.cases) {
      const ways = step.cases.map(({ name, steps }) => el("div", {},
        el("span", { class: "meta if" }, name === "otherwise" ? name : `case ${name}`), this.list(steps, isTop)));
      return el("li", { class: "branches cases" }, this.box(step, isTop), el("div", { class: "ways" }, ways));
    }
    if (!step.otherwise) {
      return el("li", step.filter ? { class: "maybe" } : {}, step.filter ? el("span", { class: "meta if" }, "if") : [], this.box(step, isTop));
    }
    const ways = [["if", step], ["else", step.otherwise]];
    const rest = [];
    for (let next = step.otherwise.otherwise; next; next = next.otherwise) rest.push(["else", next]);
    return el("li", { class: "branches" }, el("div", { class: "ways" }, [...ways, ...rest].map(([word, way]) => el("div", {},
      el("span", { class: "meta if" }, word), this.box(way, isTop)))));
  }

  list(steps, isTop) {
    return el("ol", { class: "graph" }, steps.map((step) => this.branch(step, isTop)));
  }
}

/** Draws a workflow with the states of its steps. */
function draw(section, outline, view, link) {
  const states = new Map();
  for (const state of view.steps) states.set(state.at, state);
  const drawing = new Drawing(states, link);
  const list = drawing.list(outline.steps, true);
  list.setAttribute("aria-label", "The steps as a picture");
  const failed = outline.on_failure ? drawing.afterFailure(outline.on_failure, true) : [];
  fill(section, list, failed, drawing.over ? el("p", { class: "meta" }, `${count(drawing.over, "more step")} are not drawn; the list has all.`) : []);
}

/** Shows the picture of the workflow of a run, which is asked for once. */
export async function graph(run, section, view, link) {
  section.hidden = Boolean(run.at) || view.steps.length < LEAST_STEPS;
  if (section.hidden) return;
  run.outline ||= get(of(run.id, "outline"));
  try {
    const outline = await run.outline;
    const text = JSON.stringify(view.steps.map(({ at, status, items }) => [at, status, items]));
    if (section.shown === text && section.firstChild) return;
    const focused = section.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    draw(section, outline, view, link);
    if (focused) section.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
    section.shown = text;
  } catch (why) {
    // A refusal stays; a connection that was lost does not. The list of the steps says the same.
    if (!(why instanceof Refused) || why.passes) run.outline = null;
    section.hidden = true;
  }
}
