// The typed fields of a form that a workflow asks for.

import { el, fill, plain } from "./text.js";

/** What a field takes, in a few words, as the server says it elsewhere. */
function takes({ type, min, max, choices }) {
  const what = { text: "a text of one line", long_text: "a text", integer: "a whole number", number: "a number", date: "a date like 2026-02-28",
    time: "a time like 09:30", yes_no: "yes or no", choice: `one of: ${(choices || []).join(", ")}` }[type];
  if (type === "choice" || min === undefined && max === undefined) return what;
  if (max === undefined) return `${what}, at least ${plain(min)}`;
  return min === undefined ? `${what}, at most ${plain(max)}` : `${what} from ${plain(min)} to ${plain(max)}`;
}

let made = 0;

function fieldOf(field) {
  made += 1;
  const id = `field-${made}`;
  const common = { id, "aria-describedby": `${id}-help`, ...(field.required && { required: "" }) };
  const options = { choice: field.choices, yes_no: ["yes", "no"] }[field.type];
  const typed = { date: "date", time: "time" }[field.type] || "text";
  const isNumber = field.type === "integer" || field.type === "number";
  const input = options ? el("select", common, el("option", { value: "" }, "choose"), options.map((value) => el("option", { value }, value)))
    : field.type === "long_text" ? el("textarea", { ...common, rows: "4", spellcheck: "false" })
      : el("input", { ...common, type: typed, spellcheck: "false", ...(isNumber && { inputmode: "decimal" }), ...(typed === "time" && { step: "1" }) });
  const fault = el("p", { class: "fault", role: "alert" });
  const left = field.default !== undefined ? `${plain(field.default)} if it is left out` : field.required ? "" : "may be left out";
  const row = el("div", { class: "input-of" }, el("label", { for: id }, `${field.label || field.name}${field.required ? " (required)" : ""}`), input, fault,
    el("p", { class: "meta", id: `${id}-help` }, [field.help, takes(field), left].filter(Boolean).join(" · ")));
  const wrong = (why) => { fill(fault, why); input.setAttribute("aria-invalid", "true"); };
  const right = () => { fill(fault, ""); input.removeAttribute("aria-invalid"); };
  return { name: field.name, input, row, wrong, right };
}

/** The rows of a form's fields; `data` is what was typed, as the JSON of texts, or null; `refuse` says what the server does not take, and gives a
 * sentence. What is empty is left out. */
export function typedFields(question) {
  const fields = question.fields.map(fieldOf);
  const data = () => {
    fields.forEach((field) => field.right());
    // What a browser can't read as a date is empty to a script.
    const bad = fields.find(({ input }) => input.validity.badInput);
    if (bad) { bad.wrong("it is not complete"); bad.input.focus(); return null; }
    const given = fields.filter(({ input }) => input.value !== "");
    return `{${given.map(({ name, input }) => `${JSON.stringify(name)}:${JSON.stringify(input.value)}`).join(",")}}`;
  };
  const refuse = (faults) => {
    const hit = fields.filter(({ name, wrong }) => faults.some((fault) => fault.field === name && (wrong(fault.message), true)));
    hit[0]?.input.focus();
    const others = faults.filter((fault) => !fields.some(({ name }) => name === fault.field));
    return ["It was not taken: see the fields.", ...others.map(({ field, message }) => `${field}: ${message}`)].join(" ");
  };
  return { rows: fields.map(({ row }) => row), data, refuse };
}
