// The review page: one pair of record and label at a time, answered by a key.

import { get, post } from "./api.js";
import { authority } from "./authorities.js";
import { $, announce, make } from "./dom.js";
import { frame, onKeys } from "./frame.js";
import { moment, t } from "./words.js";

const NAME = "tailwise-reviewer";
const audit = decodeURIComponent(location.pathname.split("/").at(-1));
const address = (what) => `v1/audits/${encodeURIComponent(audit)}/${what}`;

let reviewer = "";
let question = null;
let progress = null;
let busy = false;

/** Runs one step at a time: a key that is held down answers once. */
async function alone(work) {
  if (busy || !reviewer) return;
  busy = true;
  try {
    await work();
  } catch (error) {
    announce(error.message, true);
  } finally {
    busy = false;
  }
}

async function next() {
  ({ question, progress } = await post(address("next"), { reviewer }));
  draw();
  drawHistory();
}

const answer = (verdict) =>
  alone(async () => {
    if (!question) return;
    try {
      await post(address("answers"), { question: question.id, reviewer, answer: verdict });
    } catch (error) {
      if (error.status !== 409) throw error;
      announce(error.message, true); // somebody else, or another window, was faster
    }
    await next();
  });

const undo = () =>
  alone(async () => {
    const { answers } = await get(`${address("history")}?${new URLSearchParams({ reviewer, limit: "1000" })}`);
    const last = answers.find(({ withdrawn }) => !withdrawn);
    const found = await post(address("undo"), { reviewer });
    progress = found.progress;
    if (!found.question) return announce(t("nothing_to_undo"));
    question = found.question;
    if (last) announce(t("undone", { answer: t(last.answer), label: last.label }));
    draw();
    return void drawHistory();
  });

function draw() {
  $("#question").hidden = !question;
  $("#done").hidden = Boolean(question);
  $("#done").textContent = t("done");
  $("#progress").value = progress.wanted ? progress.answered / progress.wanted : 1;
  $("#progress-text").textContent = t("progress", { done: progress.answered, n: progress.wanted });
  const mine = progress.reviewers.find(({ name }) => name === reviewer)?.answered ?? 0;
  $("#me").replaceChildren(t("reviewed_by", { name: reviewer, n: mine }), " · ", make("button", { type: "button", class: "quiet", id: "not-me", click: leave }, t("not_me")));
  if (!question) return;
  const text = question.text.trim();
  const end = text.search(/[\r\n]/);
  const titled = end > 0 && end < 300;
  $("#record-title").textContent = titled ? text.slice(0, end) : "";
  $("#record-title").hidden = !titled;
  $("#record-text").textContent = titled ? text.slice(end).trim() : text;
  $(".record").scrollTop = 0;
  $("#recorded").hidden = !question.recorded.length;
  $("#recorded").replaceChildren(t("also_recorded"), " ", ...question.recorded.map(({ label }) => make("span", { class: "tag" }, label)));
  $("#label").textContent = question.label;
  const { link } = authority(question.uri);
  $("#label-facts").replaceChildren(link ? make("a", { href: link, target: "_blank", rel: "noopener noreferrer" }, question.uri) : question.uri === question.label ? "" : question.uri);
  $("#question").focus({ preventScroll: true });
}

let drawing = 0;

/** Who said what when; nobody waits for it. */
async function drawHistory() {
  const mine = ++drawing;
  const asked = new URLSearchParams({ limit: "20", ...($("#everyone").checked ? {} : { reviewer }) });
  const { answers } = await get(`${address("history")}?${asked}`).catch(() => ({ answers: null }));
  if (!answers || mine !== drawing) return;
  const lines = answers.map(({ answer: said, label, text, reviewer: who, time, withdrawn }) =>
    make("tr", { class: withdrawn ? "withdrawn" : null, title: withdrawn ? t("withdrawn") : null }, make("td", { class: "text" }, t(said), withdrawn ? make("small", {}, ` (${t("withdrawn")})`) : null), make("td", { class: "text" }, label), make("td", { class: "text" }, text.split(/[\r\n]/)[0]), make("td", { class: "text" }, who), make("td", {}, make("time", { datetime: time }, moment(time)))),
  );
  $("#answers").replaceChildren(...(lines.length ? lines : [make("tr", {}, make("td", { colspan: 5, class: "soft" }, t("no_answers")))]));
}

function leave() {
  localStorage.removeItem(NAME);
  reviewer = "";
  $("#desk").hidden = true;
  $("#who").hidden = false;
  $("#reviewer").focus();
}

function enter(name) {
  reviewer = name.trim();
  if (!reviewer) return undefined;
  localStorage.setItem(NAME, reviewer);
  return alone(async () => {
    await next();
    $("#who").hidden = true;
    $("#desk").hidden = false;
    $("#question").focus({ preventScroll: true });
  });
}

$("#who").addEventListener("submit", (event) => {
  event.preventDefault();
  enter($("#reviewer").value);
});
for (const button of document.querySelectorAll("[data-answer]")) button.addEventListener("click", () => answer(button.dataset.answer));
$("#undo").addEventListener("click", undo);
$("#everyone").addEventListener("change", drawHistory);
document.addEventListener("language", () => {
  document.title = `${t("review")} ${audit} · tailwise`;
  if (progress) draw();
  if (reviewer) drawHistory();
});
onKeys({ y: () => answer("yes"), j: () => answer("yes"), n: () => answer("no"), u: () => answer("unsure"), z: undo, Backspace: undo });

frame("review").then(() => {
  document.title = `${t("review")} ${audit} · tailwise`;
  const known = localStorage.getItem(NAME);
  $("#reviewer").value = known ?? "";
  document.body.dataset.ready = "yes";
  if (known) enter(known);
  else $("#reviewer").focus();
});
