// A form made of the JSON Schema of an input: a field for each property, by its type.

import { amount, el, jsonText, plain } from "./text.js";

/** A longer list of values is a field to type into. */
const MOST_OPTIONS = 50;

const types = (schema) => [schema.type].flat().filter((type) => type && type !== "null");
const named = (text) => (text === undefined ? "" : typeof text === "string" ? plain(text) : jsonText(text));

/** What is typed into a field of this schema, as JSON; none when it is left empty. It throws when it is no value of the type. */
function valueOf(kind, text) {
  if (kind === "text") return text === "" ? undefined : JSON.stringify(text);
  const bare = text.trim();
  if (bare === "") return undefined;
  JSON.parse(bare);
  if (kind === "number" && !/^-?\d/.test(bare)) throw new Error("it is no number");
  return bare;
}

/** The field of a property. */
function fieldOf(name, schema, required) {
  const [type] = types(schema);
  const id = `input-${name.replace(/[^A-Za-z0-9_-]/g, (sign) => `.${sign.codePointAt(0)}`)}`;
  const values = schema.enum || (schema.const === undefined ? null : [schema.const]);
  let kind = { string: "text", integer: "number", number: "number" }[type] || "json";
  let input;
  if (values && values.length <= MOST_OPTIONS || type === "boolean") {
    kind = "json";
    const options = (values || [true, false]).map((value) => el("option", { value: jsonText(value) }, named(value)));
    input = el("select", { id }, el("option", { value: "" }, required ? "choose" : "not given"), options);
    if (schema.default !== undefined) input.value = jsonText(schema.default);
  } else {
    const isLong = kind === "json" || amount(schema.maxLength) > 200 || schema.format === "textarea";
    input = el(isLong ? "textarea" : "input", { id, spellcheck: "false", ...(kind === "number" && { inputmode: "decimal" }) });
    if (schema.default !== undefined) input.value = kind === "text" ? named(schema.default) : jsonText(schema.default);
  }
  if (required) input.required = true;
  const what = [type === "integer" ? "a whole number" : kind === "number" ? "a number" : kind === "json" && input.localName === "textarea" ? `JSON${type ? `: ${type}` : ""}` : "",
    schema.pattern ? `like ${schema.pattern}` : "", schema.format || ""].filter(Boolean).join(", ");
  const help = [schema.description || "", what].filter(Boolean).join(" · ");
  if (help) input.setAttribute("aria-describedby", `${id}-help`);
  const row = el("div", { class: "input-of" }, el("label", { for: id }, `${schema.title || name}${required ? " (required)" : ""}`), input,
    help ? el("p", { class: "meta", id: `${id}-help` }, help) : []);
  return { name, kind, input, row };
}

/** The fields of an input, and what gives it as JSON. */
export function inputForm(schema) {
  const properties = Object.entries(schema?.properties || {});
  const required = new Set(schema?.required || []);
  const fields = properties.map(([name, property]) => fieldOf(name, typeof property === "object" && property ? property : {}, required.has(name)));
  const isOpen = !schema || schema.additionalProperties !== false || !properties.length && schema.type !== "object";
  const more = isOpen ? fieldOf(properties.length ? "More input" : "Input", { type: "object", description: properties.length ? "an object with more members" : "an object" }, false) : null;
  /** The input as JSON. It throws with the field that is wrong. */
  const read = () => {
    const members = [];
    const taken = ({ name, kind, input }) => {
      try {
        return valueOf(kind, input.value);
      } catch (why) {
        input.focus();
        throw new Error(`${name}: ${why.message}`);
      }
    };
    for (const field of fields) {
      const text = taken(field);
      if (text !== undefined) members.push(`${JSON.stringify(field.name)}:${text}`);
    }
    const rest = more && taken(more);
    if (rest) {
      const inside = rest.replace(/^\{|\}$/g, "").trim();
      if (!rest.startsWith("{")) { more.input.focus(); throw new Error(`${more.name}: it is no object`); }
      if (inside) members.push(inside);
    }
    return `{${members.join(",")}}`;
  };
  return { rows: [...fields, ...(more ? [more] : [])].map(({ row }) => row), read };
}
