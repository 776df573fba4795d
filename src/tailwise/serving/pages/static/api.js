// Talking to the service; the addresses follow from where this file was loaded, under any prefix.

import { make } from "./dom.js";
import { t } from "./words.js";

export const ROOT = new URL("..", import.meta.url);
const TOKEN = "tailwise-token";

/** What the service refused, with its status and its sentence. */
export class Problem extends Error {
  constructor(status, detail, wait = 0) {
    super(detail);
    this.status = status;
    this.wait = wait;
  }
}

export const get = (path, options) => call(path, { method: "GET" }, options);

export const post = (path, body, options) =>
  call(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }, options);

/** A project's address: `project("en", "suggest")`. */
export const project = (id, what = "") => `v1/projects/${encodeURIComponent(id)}${what && `/${what}`}`;

async function call(path, request, { signal, retries = 3 } = {}) {
  try {
    return await once(path, request, signal);
  } catch (error) {
    if (error.status === 503 && retries > 0) {
      await new Promise((resolve) => setTimeout(resolve, 1000 * Math.min(error.wait || 1, 10)));
      return call(path, request, { signal, retries: retries - 1 });
    }
    if (error.status === 401 && (await askForToken())) return call(path, request, { signal, retries });
    throw error;
  }
}

async function once(path, request, signal) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = { ...request.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  let response;
  try {
    response = await fetch(new URL(path, ROOT), { ...request, headers, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, t("unreachable"));
  }
  if (response.ok) return response.status === 204 ? null : response.json();
  const told = await response.json().catch(() => ({}));
  const wait = Number(response.headers.get("Retry-After")) || 0;
  throw new Problem(response.status, told.detail || told.title || `${response.status} ${response.statusText}`, wait);
}

let asking = null;

/** Asks for the service's token once, however many requests want it; it is kept until the tab is closed. */
function askForToken() {
  asking ??= new Promise((resolve) => {
    const field = make("input", { type: "password", autocomplete: "current-password", id: "token" });
    const dialog = make(
      "dialog",
      { "aria-labelledby": "token-h" },
      make(
        "form",
        { method: "dialog" },
        make("h2", { id: "token-h" }, t("token")),
        make("label", { for: "token" }, t("token_help")),
        make("input", { type: "text", autocomplete: "username", value: "tailwise", hidden: true }), // whose password managers ask
        field,
        make("div", { class: "row" }, make("button", { value: "yes", class: "main" }, t("token_use")), make("button", { value: "" }, t("cancel"))),
      ),
    );
    dialog.addEventListener("close", () => {
      const given = dialog.returnValue && field.value.trim();
      if (given) sessionStorage.setItem(TOKEN, given);
      dialog.remove();
      asking = null;
      resolve(Boolean(given));
    });
    document.body.append(dialog);
    dialog.showModal();
  });
  return asking;
}
