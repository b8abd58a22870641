// What a human decides about a run that waits, and how it continues after an end.

import { changes } from "./acts.js";
import { answer, button, forms, titles } from "./decide.js";
import { ask, because, of } from "./server.js";
import { changed, say } from "./said.js";
import { called, el, fill, plain, prose } from "./text.js";

const $ = (id) => document.getElementById(id);
/** How often a decision is sent again while another one of its run is taken, and after which time. */
const MOST_TRIES = 20;
const TRY_AGAIN_MS = 250;

/** A run that no server takes up, and the button that resumes it. */
export function aside(run, result, reopen) {
  fill($("end"), el("h2", {}, el("span", { class: "status quarantined" }, "quarantined")),
    el("p", {}, result.error.message), goOn(run, { text: "Resume", route: "resume?async=true", body: '{"resume":true}' }, reopen));
  $("end").hidden = false;
}

/** The button that retries a run whose model could not be reached. */
const again = (run, reopen) => goOn(run, { text: "Retry", route: "retry?async=true", body: "{}" }, reopen);

const goOn = (run, { text, route, body }, reopen) => el("div", { class: "buttons" }, button(text, "first", async (event) => {
  event.target.disabled = true;
  try {
    await ask(of(run.id, route), { method: "POST", body });
    reopen();
  } catch (why) {
    say(because(why));
    event.target.disabled = false;
  }
}));

/** Sends decisions about this pause: the server refuses them once there is a newer pause. */
function sender(run, number, fault, settle) {
  const enable = (able) => $("pause").querySelectorAll("button").forEach((one) => { one.disabled = !able; });
  const send = async (body) => {
    enable(false);
    fill(fault, "");
    try {
      await ask(of(run.id, "resume?async=true"), { method: "POST", body: `{${body},"pause":${plain(number)}}` });
      say("Your decision was taken.");
      changed();
    } catch (why) {
      fill(fault, because(why));
      enable(true);
      if (why.code === "document_changed") {
        fault.append(changes(run), button("With the new text", "", () => send(`${body},"new_document":true`)),
          button("With the recorded text", "", () => send(`${body},"new_document":false`)));
      }
    }
    run.panel = "";
    settle();
  };
  return send;
}

/** The ways after a refusal because the folder has changed the document of the run since it started. By the new text a step may
 * ask something else: the run takes it, and its steps are looked at again. `resend` decides by the recorded one. */
function texts(run, resend) {
  const fault = el("span", { class: "fault" });
  const look = async () => {
    try {
      await ask(of(run.id, "resume?async=true"), { method: "POST", body: '{"resume":true,"new_document":true}' });
      fill(fault, "The run has the new text: look at what it asks now, and decide.");
      changed();
    } catch (why) {
      fill(fault, because(why));
    }
  };
  return [changes(run), button("With the new text", "", look), button("With the recorded text", "", resend), fault];
}

/** Sends several decisions about steps, and gives what became of each, or why none was taken. */
const together = (run) => async (decisions, more = {}) => {
  try {
    const result = await (await ask(`approvals/${encodeURIComponent(run.id)}`, { method: "POST", body: JSON.stringify({ decisions, ...more }) })).json();
    if (result.refused.some((one) => one.code === "document_changed")) result.changed = (decide) => texts(run, () => decide({ new_document: false }));
    if (result.taken.length) say(result.taken.length > 1 ? "Your decisions were taken." : "Your decision was taken.");
    changed();
    return result;
  } catch (why) {
    return { why: because(why) };
  }
};

/** What sends a decision about a step, or several. */
export const poster = (run) => Object.assign(alone(run), { all: together(run) });

/** What sends a decision about a step by the recorded text of the document, and the ways to choose the text. */
function choice(run, kind, at, body) {
  const part = el("span", {}, texts(run, async () => {
    // The body of a form is the form: the decision is sent with its answer.
    const sent = kind === "form" ? JSON.stringify({ answer: body, at }) : body;
    const why = await alone(run)(kind === "form" ? "resume" : kind, at, sent.replace(/\}$/, ',"new_document":false}'));
    fill(part, why || "Your decision was taken.");
  }));
  return part;
}

/** Sends a decision about a step. Another decision of the run may be under way: then it is sent again. */
const alone = (run) => async (kind, at, body, atFields) => {
  const path = { approval: `approvals/${encodeURIComponent(run.id)}/${encodeURIComponent(at)}`,
    form: `forms/${encodeURIComponent(run.id)}/${encodeURIComponent(at)}/submit`, resume: of(run.id, "resume") }[kind];
  for (let tries = 0; ; tries += 1) {
    try {
      await ask(`${path}?async=true`, { method: "POST", body });
      say("Your decision was taken.");
      changed();
      return null;
    } catch (why) {
      const other = why.code === "run_driven";
      if (atFields && why.fields) return atFields(why.fields);
      if (why.code === "document_changed") return [because(why), choice(run, kind, at, body)];
      if (other && tries < MOST_TRIES) await new Promise((go) => setTimeout(go, TRY_AGAIN_MS));
      else return other ? "Other steps of the run are under way: try again when they have ended or wait." : because(why);
    }
  }
};

/** Shows what to decide. Each of several calls has its own form, and the others keep what was typed. */
export function panel(run, pause, number, { settle, reopen }) {
  const calls = pause.calls || (pause.call ? [pause.call] : []);
  const key = (call) => `${called(call)} ${call.hash} ${JSON.stringify(call.approval || "")}`;
  const { desk } = run;
  if (desk.number !== number || calls.some((call) => !desk.kept.has(key(call)))) {
    const fault = el("p", { class: "fault", role: "alert" });
    const send = sender(run, number, fault, settle);
    const form = forms.get(pause.kind);
    const kept = new Map(form ? calls.map((call) => [key(call), form(call, send, fault)]) : []);
    run.desk = { number, kept };
    return fill($("pause"), el("h2", {}, titles[pause.kind] || pause.kind), el("p", { class: "question" }, prose(pause.question)),
      pause.context ? el("p", { class: "context" }, prose(pause.context)) : [],
      form ? [...kept.values()] : pause.kind === "model_error" || pause.kind === "spending_limit" ? again(run, reopen) : pause.kind.startsWith("waiting") ? [] : answer(pause, send, fault), fault);
  }
  const still = new Set(calls.map(key));
  desk.kept.forEach((group, call) => { if (!still.has(call)) group.remove(); });
  fill($("pause").querySelector(".question"), prose(pause.question));
  $("pause").querySelectorAll("button").forEach((one) => { one.disabled = false; });
}
