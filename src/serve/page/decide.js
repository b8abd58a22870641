// The forms in which a human decides about a pause. `send` sends the members of a decision.

import { isPlain, table } from "./approvals.js";
import { typedFields } from "./fields.js";
import { called, count, el, exact, exactText, fill, head, needs, plain, prose, when } from "./text.js";

export const button = (text, kind, on) => el("button", { type: "button", class: kind, on }, text);

/** A label with its field, and the field. */
export function field(label, kind, value = "") {
  const input = el(kind, { spellcheck: "false" });
  input.value = value;
  return [el("label", {}, label, input), input];
}

export const titles = { model_error: "The model can't be reached", human: "A question", stuck: "The run repeats itself", approval: "Wants your approval", uncertain: "Did it happen?", waiting: "Waits for a time", waiting_event: "Waits for an event", spending_limit: "A spending limit is reached" };

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
const place = (call) => `${call.place || `"call":"${called(call)}"`},"hash":${JSON.stringify(call.hash)}`;
const waiting = (call) => [
  head(call.action, call.note || `call ${called(call)}, with exactly this input`),
  el("pre", { class: "exact" }, exact(call.action_input)), needs(call.approval)];

function approval(call, send, fault) {
  const text = exactText(call.action_input);
  const [why, reason] = field(call.why || "Why not (the model reads it)", "input");
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
  const [why, reason] = field("It failed, because", "input");
  const failed = () => { if (reason.value.trim()) send(`"fail":${JSON.stringify(reason.value)},${place(call)}`); else fill(fault, "Say why it failed first."); };
  return el("div", { class: "decision", role: "group", "aria-label": `The call of ${call.action}` }, waiting(call), label,
    el("div", { class: "buttons" }, button("It happened", "good", happened),
      button("It did not happen: retry", "", () => send(`"retry":true,${place(call)}`))),
    el("div", { class: "with" }, why, button("It failed", "bad", failed)));
}

export const forms = new Map([["approval", approval], ["uncertain", uncertain]]);

// ---- the steps of a workflow that wait --------------------------------------------------------

/** A text as JSON: as it is, if it is JSON of another kind than a text, else as a text. */
const asJson = (text, kind) => (kind === "text" ? JSON.stringify(text) : text.trim());
const isValue = (text) => { try { return typeof JSON.parse(text) !== "string"; } catch { return false; } };

/** A form with an input for each key. What is typed is a text, or JSON: a number, `true`, a list. */
function filling(question, send, fault) {
  const inputs = question.expected_keys.map((key) => {
    const [label, input] = field(key, "textarea");
    input.rows = 1;
    const kind = el("select", { "aria-label": `What ${key} is` }, el("option", { value: "text" }, "text"), el("option", { value: "json" }, "JSON"));
    kind.addEventListener("change", () => { kind.chosen = true; });
    input.addEventListener("input", () => { if (!kind.chosen) kind.value = isValue(input.value) ? "json" : "text"; });
    return { key, input, kind, row: el("div", { class: "with key" }, label, kind) };
  });
  const give = () => {
    for (const { key, input, kind } of inputs) {
      if (kind.value === "json" && !/\S/.test(input.value)) {
        fill(fault, `Write a value for ${key}.`);
        return input.focus();
      }
      if (kind.value === "json" && written(input, fault) === null) return undefined;
    }
    const members = inputs.map(({ key, input, kind }) => `${JSON.stringify(key)}:${asJson(input.value, kind.value)}`);
    return send("form", `{${members.join(",")}}`);
  };
  const until = question.expires_at ? el("p", { class: "meta" }, "without an answer until ", when(question.expires_at), ", it fails") : [];
  return [inputs.map(({ row }) => row), until, el("div", { class: "buttons" }, button("Send", "first", give))];
}

/** A form with typed fields. What is typed is sent as it stands: the server reads it, and says at which field it is not taken. */
function typed(question, send) {
  const show = question.show === undefined ? [] : el("pre", { class: "exact" }, exact(question.show));
  const { rows, data, refuse } = typedFields(question);
  const until = question.expires_at ? el("p", { class: "meta" }, "without an answer until ", when(question.expires_at), ", it fails") : [];
  const give = () => { const text = data(); if (text !== null) send("form", text, refuse); };
  return [show, rows, until, el("div", { class: "buttons" }, button("Send", "first", give))];
}

/** The step of the run itself, when the question is one of a run below it. */
const own = (at) => at.split("/")[0];

/** What a no to the approval of a step does; nothing where a model reads it. */
function afterNo({ on_rejected: then, at }) {
  if (!then) return [];
  const stopped = at.split("/").pop().includes(".") ? "a no stops this item, or the run: none of its later steps runs" : "a no stops the run: no later step of it runs";
  return el("p", { class: "meta" }, then === "stop" ? stopped : "after a no the next steps run, as their filters say");
}

/** The approval that is a step of its own: what is said with it goes on as `@__comment`. */
function approving(question, send, fault) {
  const text = exactText(question.action_input);
  const hidden = text.includes("[hidden]");
  const [says, comment] = field("Comment", "input");
  const [other, input] = field("Another payload, as JSON", "textarea", text);
  const hash = `"hash":${JSON.stringify(question.hash)}`;
  const said = () => (comment.value.trim() ? `"comment":${JSON.stringify(comment.value)},` : "");
  const decide = (approved) => send("approval", `{"approved":${approved},${said()}${hash}}`);
  const edit = () => { const to = written(input, fault); if (to !== null) send("resume", `{"edit":${to},${said()}"at":${JSON.stringify(question.at)},${hash}}`); };
  return [
    Object.keys(question.action_input || {}).length ? el("pre", { class: "exact" }, exact(question.action_input)) : [],
    hidden ? el("p", { class: "meta" }, "[hidden] stands for what its name or form says is secret; the step has the value.") : [],
    afterNo(question), says, el("div", { class: "buttons" }, button("Approve", "good", () => decide(true)), button("Deny", "bad", () => decide(false))),
    hidden ? [] : el("details", {}, el("summary", {}, "Change the payload"), other, button("Approve this payload", "", edit)),
  ];
}

/** What decides about a step: its own question, or that of its run, which may be one of several calls. */
function deciding(question, send, fault) {
  const at = `"at":${JSON.stringify(question.at)}`;
  const resume = (members) => send("resume", `{${members}}`);
  if (question.fields) return typed(question, send);
  if (question.expected_keys) return filling(question, send, fault);
  const form = forms.get(question.kind);
  if (form && question.calls) {
    return question.calls.map((call) => form({ ...call, place: `${at},"call":"${called(call)}"` }, resume, fault));
  }
  if (question.kind === "approval" && question.action === "PbotApproval") return approving(question, send, fault);
  const call = { ...question, place: at, note: "with exactly this input", why: "Why not" };
  if (form) return [afterNo(question), form(call, resume, fault)];
  if (question.kind === "model_error" || question.kind === "spending_limit") return el("div", { class: "buttons" }, button("Retry", "first", () => resume(`"retry":true,${at}`)));
  if (question.kind === "waiting") return el("div", { class: "buttons" }, button("End the wait", "", () => resume(`"approve":true,${at}`)));
  return answer(question, (members) => resume(`${members},${at}`), fault);
}

const keyOf = ({ at, hash, run_id: run, run_pause: pause, calls, approval: needed }) => JSON.stringify([at, hash, run, pause, calls, needed]);

/** Shows what the steps of a workflow ask: each has its own form, and those that stay keep what was typed. `post` sends a
 * decision, and gives the sentence of a refusal; `post.all` sends several; `link` is where a step is shown. Several approvals are a table above their forms. */
export function questions(section, view, post, link) {
  const asked = view.questions || [];
  const known = new Map(Array.from(section.querySelectorAll(".question-of"), (one) => [one.dataset.key, one]));
  if (!section.querySelector(".asked")) {
    fill(section, el("h2", {}), el("p", { class: "meta" }), el("div", { hidden: "" }), el("div", { class: "asked" }));
  }
  const [title, note, part, list] = section.children;
  const waitsByItself = ({ kind }) => kind.startsWith("waiting") || kind === "model_error" || kind === "spending_limit";
  fill(title, asked.every(waitsByItself) ? titles[asked[0]?.kind] || "Waits" : "Waits for a human");
  const left = view.waiting - asked.length;
  fill(note, view.waiting > 1 ? `${count(view.waiting, "step")} wait${left > 0 ? `; these are the first ${asked.length}` : ""}` : "");
  const isTable = table(part, asked, post.all, link);
  asked.forEach((question, n) => {
    const key = keyOf(question);
    let group = known.get(key);
    known.delete(key);
    if (!group) {
      const fault = el("p", { class: "fault", role: "alert" });
      const enable = (able) => group.querySelectorAll("button").forEach((one) => { one.disabled = !able; });
      const send = async (kind, body, atFields) => {
        enable(false);
        fill(fault, "");
        const why = await post(kind, question.at, body, atFields);
        if (why === null) return;
        fill(fault, why);
        enable(true);
      };
      const asks = question.run_id ? ["asked by ", el("a", { class: "link id", href: `#${encodeURIComponent(question.run_id)}` }, question.run_id)]
        : question.expected_keys ? "a form" : titles[question.kind] || question.kind;
      group = el("details", { class: "question-of", "data-key": key },
        el("summary", { class: "head" }, el("span", { class: "at" }, question.at),
          question.item_label === undefined ? [] : el("span", { class: "meta" }, plain(question.item_label)), el("span", { class: "meta" }, asks)),
        el("div", { role: "group", "aria-label": `The step ${question.at}` },
          (question.expected_keys && !question.fields) || question.kind === "uncertain" ? [] : el("p", { class: "question" }, prose(question.question)), deciding(question, send, fault), fault,
          el("p", { class: "meta" }, el("a", { class: "link", href: link(own(question.at)) }, `Show the step ${own(question.at)}`))));
      group.open = !isTable || !isPlain(question);
    }
    if (!isTable) group.open = true;
    if (list.children[n] !== group) list.insertBefore(group, list.children[n] || null);
  });
  known.forEach((group) => group.remove());
  section.hidden = !asked.length;
}
