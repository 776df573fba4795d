// The page of the interface: what openapi.json says, readable.

import { get } from "./api.js";
import { $, announce, make } from "./dom.js";
import { frame } from "./frame.js";

function kind(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.items) return `array of ${kind(schema.items) || "anything"}`;
  return [schema.type ?? ""].flat().join(" or ");
}

function bounds(schema) {
  const names = { minimum: "≥", maximum: "≤", maxLength: "length ≤", minLength: "length ≥", maxItems: "items ≤", minItems: "items ≥" };
  return Object.entries(names)
    .filter(([name]) => schema[name] !== undefined)
    .map(([name, sign]) => `${sign} ${schema[name]}`)
    .join(", ");
}

const line = (name, schema, required, about = "") =>
  make("tr", {}, make("td", { class: "text" }, make("code", {}, name), required ? " *" : ""), make("td", { class: "text" }, kind(schema)), make("td", { class: "text" }, [bounds(schema), schema.default !== undefined ? `default ${JSON.stringify(schema.default)}` : "", schema.description ?? about].filter(Boolean).join("; ")));

function table(of, caption, lines) {
  if (!lines.length) return null;
  const head = ["name", "type", "what"].map((name) => make("th", { scope: "col", class: "text" }, name));
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${of}: ${caption}` }, make("table", {}, make("caption", {}, caption), make("thead", {}, make("tr", {}, head)), make("tbody", {}, lines)));
}

const properties = (schema, prefix = "") => Object.entries(schema?.properties ?? {}).flatMap(([name, one]) => [line(prefix + name, one, schema.required?.includes(name)), ...properties(one.items ?? one, `${prefix}${name}${one.items ? "[]" : ""}.`)]);

function operation(path, method, { summary, description, parameters = [], requestBody, responses = {} }) {
  const answer = responses["200"]?.content;
  const [[media, shape] = []] = Object.entries(answer ?? {});
  const of = `${method} ${path}`;
  const others = Object.entries(responses).filter(([status]) => status !== "200");
  return make(
    "details",
    { class: "operation" },
    make("summary", {}, make("code", { class: `method ${method}` }, method.toUpperCase()), " ", make("code", {}, path), " ", make("span", {}, summary ?? "")),
    description && make("p", {}, description),
    table(of, "Parameters", parameters.map(({ name, schema, required, in: where }) => line(name, schema, required, where))),
    Object.entries(requestBody?.content ?? {}).map(([type, { schema }]) => table(of, `Body, ${type}`, properties(schema))),
    media && table(of, `Answer, ${media}`, properties(shape.schema)),
    make("p", { class: "soft" }, others.map(([status, { description: said }]) => `${status} ${said}`).join(" · ")),
  );
}

async function begin() {
  await frame("docs");
  const { info, paths } = await get("openapi.json");
  $("#title").textContent = `${info.title} ${info.version}`;
  $("#summary").textContent = info.summary ?? info.description ?? "";
  const groups = new Map();
  for (const [path, methods] of Object.entries(paths))
    for (const [method, said] of Object.entries(methods)) {
      const tag = said.tags?.[0] ?? "";
      groups.set(tag, [...(groups.get(tag) ?? []), operation(path, method, said)]);
    }
  $("#operations").replaceChildren(...[...groups].flatMap(([tag, found]) => [make("h2", {}, tag), ...found]));
  document.body.dataset.ready = "yes";
}

begin().catch((error) => announce(error.message, true));
