// The forms in which a human decides about a pause. `send` sends the members of a decision.

import { called, el, exact, exactText, fill, head, needs } from "./text.js";

export const button = (text, kind, on) => el("button", { type: "button", class: kind, on }, text);

function field(label, kind, value = "") {
  const input = el(kind, { spellcheck: "false" });
  input.value = value;
  return [el("label", {}, label, input), input];
}

export const titles = { model_error: "The model can't be reached", human: "A question", stuck: "The run repeats itself", approval: "Wants your approval", uncertain: "Did it happen?" };

export function answer(pause, send, fault) {
  const [label, input] = field(pause.kind === "stuck" ? "What should it do instead?" : "Your answer", "textarea");
  const give = (text) => send(`"answer":${JSON.stringify(text)}`);
  const options = (pause.options || []).map((option) => button(option, "option", () => give(option)));
  return [
    options.length ? el("div", { class: "buttons", role: "group", "aria-label": "Answers" }, options) : [], label,
    el("div", { class: "buttons" }, button("Send", "first", () => (input.value.trim() ? give(input.value)
      : fill(fault, "Write an answer first.")))),
  ];
}

/** The text of a field that holds JSON; for another text it shows the error and returns null. */
function written(input, fault) {
  try {
    JSON.parse(input.value);
    return input.value;
  } catch (why) {
    fill(fault, `This is no JSON: ${why.message}`);
    input.focus();
    return null;
  }
}

// The hash binds the decision to the call as it is shown here.
const place = (call) => `"call":"${called(call)}","hash":${JSON.stringify(call.hash)}`;
const waiting = (call) => [
  head(call.action, `call ${called(call)}, with exactly this input`),
  el("pre", { class: "exact" }, exact(call.action_input)), needs(call.approval)];

function approval(call, send, fault) {
  const text = exactText(call.action_input);
  const [why, reason] = field("Why not (the model reads it)", "input");
  const [other, input] = field("Another input, as JSON", "textarea", text);
  const deny = () => send(`"deny":true,${reason.value.trim() ? `"reason":${JSON.stringify(reason.value)},` : ""}${place(call)}`);
  const edit = () => { const text = written(input, fault); if (text !== null) send(`"edit":${text},${place(call)}`); };
  // A hidden value would be replaced by the word that hides it.
  const hidden = text.includes("[hidden]");
  return el("div", { class: "decision", role: "group", "aria-label": `The call of ${call.action}` }, waiting(call),
    hidden ? el("p", { class: "meta" }, "[hidden] stands for what its name or form says is secret; the call has the value.") : [],
    el("div", { class: "buttons" }, button("Approve", "good", () => send(`"approve":true,${place(call)}`))),
    el("div", { class: "with" }, why, button("Deny", "bad", deny)),
    hidden ? [] : el("details", {}, el("summary", {}, "Change the input"), other, button("Approve this input", "", edit)));
}

function uncertain(call, send, fault) {
  const [label, input] = field("It happened, and gave this (JSON)", "textarea");
  const happened = () => { const text = written(input, fault); if (text !== null) send(`"happened":${text},${place(call)}`); };
  return el("div", { class: "decision", role: "group", "aria-label": `The call of ${call.action}` }, waiting(call), label,
    el("div", { class: "buttons" }, button("It happened", "good", happened),
      button("It did not happen: retry", "", () => send(`"retry":true,${place(call)}`))));
}

export const forms = new Map([["approval", approval], ["uncertain", uncertain]]);
