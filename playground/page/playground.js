// The page around the judgement: files in tabs, a report beside them. Everything that a document says is shown as text.
import init, { check, explain } from "./loopctl_playground.js";

const EXAMPLE = {
  "loop.json": `{
  "type": "loop",
  "input": {
    "type": "object",
    "properties": { "order_id": { "type": "string" } },
    "required": ["order_id"]
  },
  "properties": {
    "mode": "react",
    "model": "main",
    "objective": "Find out why order {{input.order_id}} is late, and tell the customer in two sentences.",
    "tools": [{ "type": "action", "name": "lookup_ordr" }],
    "max_iterations": 8,
    "on_stuck": { "iterations": 3, "action": "escalate" }
  }
}
`,
  "actions/lookup_order.json": `{
  "action_name": "lookup_order",
  "kind": "http",
  "description": "Reads one order: its lines, its carrier and every scan.",
  "url": "https://api.example.com/orders/{{order_id}}",
  "http_method": "GET"
}
`,
  "loopctl.json": `{
  "models": {
    "main": { "provider": "openai", "model": "gpt-4o-mini", "api_key": "env:OPENAI_API_KEY" }
  },
  "allow": { "hosts": ["api.example.com"] }
}
`,
};
const STORED = "loopctl.playground";
const PAUSE_MS = 150;
const BYTES = new TextEncoder();
const LETTERS = new TextDecoder();

const element = (id) => document.getElementById(id);
const [tabs, text, summary, faults, page] = ["tabs", "text", "summary", "faults", "page"].map(element);

let files = stored() ?? { ...EXAMPLE };
let shown = Object.keys(files)[0];
let waiting;

function stored() {
  try {
    const known = JSON.parse(localStorage.getItem(STORED));
    const entries = known && typeof known === "object" && !Array.isArray(known) ? Object.entries(known) : [];
    const isSound = entries.length > 0 && entries.every(([, text]) => typeof text === "string");
    return isSound ? Object.fromEntries(entries) : null;
  } catch {
    return null;
  }
}

function store() {
  try {
    localStorage.setItem(STORED, JSON.stringify(files));
  } catch {
    // The page works without: the files are then lost when it is closed.
  }
}

function made(tag, name, content) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (content !== undefined) made.textContent = content;
  return made;
}

function button(label, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = label;
  made.addEventListener("click", act);
  return made;
}

function showTabs() {
  tabs.replaceChildren(
    ...Object.keys(files).map((path) => {
      const tab = button(path, () => open(path));
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-selected", String(path === shown));
      return tab;
    }),
  );
}

function open(path) {
  if (!(path in files)) return;
  shown = path;
  text.value = files[path];
  text.setAttribute("aria-label", `Text of ${path}`);
  showTabs();
  judge();
}

// Places are in bytes of UTF-8, and a text area counts in units of UTF-16.
function unit(content, byte) {
  return LETTERS.decode(BYTES.encode(content).subarray(0, byte)).length;
}

function select(fault) {
  if (fault.file !== shown) open(fault.file);
  const content = files[fault.file];
  if (content === undefined) return;
  const [start, end] = [unit(content, fault.start), unit(content, fault.end)];
  text.focus();
  text.setSelectionRange(start, end);
  const line = content.slice(0, start).split("\n").length;
  text.scrollTop = Math.max(0, (line - 6) * 19.5);
}

function apply(fault) {
  const content = files[fault.file];
  const { start, end, replacement } = fault.suggestion;
  files[fault.file] = content.slice(0, unit(content, start)) + replacement + content.slice(unit(content, end));
  store();
  open(fault.file);
}

// Text with its code between backticks.
function prose(tag, name, content) {
  const parts = content.split("`").map((part, at) => (at % 2 ? made("code", "", part) : part));
  const prose = made(tag, name);
  prose.append(...parts);
  return prose;
}

// The few forms of Markdown that the pages of codes use: headings, fences, paragraphs.
function showPage(code) {
  const parts = [];
  let fence = null;
  let paragraph = [];
  const flush = () => {
    if (paragraph.length) parts.push(prose("p", "", paragraph.join(" ")));
    paragraph = [];
  };
  for (const line of explain(code).split("\n")) {
    if (line.startsWith("```")) {
      flush();
      if (fence) parts.push(made("pre", "", fence.join("\n")));
      fence = fence ? null : [];
    } else if (fence) {
      fence.push(line);
    } else if (line.startsWith("#")) {
      flush();
      parts.push(prose("h2", "", line.replace(/^#+ */, "")));
    } else if (line.trim() === "") {
      flush();
    } else {
      paragraph.push(line.trim());
    }
  }
  flush();
  page.replaceChildren(...parts);
  page.hidden = false;
  page.scrollIntoView({ block: "nearest" });
}

function row(fault) {
  const row = made("li", fault.severity);
  const head = made("div");
  head.append(made("span", "code", `${fault.severity}[${fault.code}] `));
  head.append(made("span", "place", `${fault.file}:${fault.line}:${fault.column}`));
  row.append(head, prose("p", "message", fault.message));
  if (fault.help) row.append(prose("p", "help", `help: ${fault.help}`));
  const actions = made("div", "actions");
  if (fault.file in files) actions.append(button("Show", () => select(fault)));
  if (fault.suggestion && fault.file in files) {
    const shown = fault.suggestion.replacement.trim() || "nothing";
    actions.append(button(`Replace with ${shown.length > 40 ? `${shown.slice(0, 40)}…` : shown}`, () => apply(fault)));
  }
  actions.append(button("Explain", () => showPage(fault.code)));
  row.append(actions);
  return row;
}

function plural(count, word) {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

function judge() {
  const report = JSON.parse(check(JSON.stringify(files), shown));
  const count = (severity) => report.faults.filter((fault) => fault.severity === severity).length;
  const [errors, warnings] = [count("error"), count("warning")];
  const counts = [errors && plural(errors, "error"), warnings && plural(warnings, "warning")].filter(Boolean);
  summary.textContent = report.refused ?? (counts.length ? `${counts.join(", ")} in ${shown}` : `No errors or warnings in ${shown}`);
  summary.className = report.refused || errors ? "bad" : warnings ? "warn" : "good";
  faults.replaceChildren(...report.faults.slice(0, 100).map(row));
  if (report.faults.length > 100) faults.append(made("li", "", `and ${report.faults.length - 100} more`));
}

text.addEventListener("input", () => {
  files[shown] = text.value;
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    store();
    judge();
  }, PAUSE_MS);
});

element("add").addEventListener("click", () => {
  const path = prompt("Path of the file, such as actions/refund.json or loops/review.json", "actions/new.json")?.trim();
  if (!path || path in files) return;
  files[path] = "{\n}\n";
  store();
  open(path);
});

element("reset").addEventListener("click", () => {
  files = { ...EXAMPLE };
  page.hidden = true;
  store();
  open(Object.keys(files)[0]);
});

try {
  await init();
  open(shown);
} catch (error) {
  summary.className = "bad";
  summary.textContent = `The page can't start: ${error}`;
}
