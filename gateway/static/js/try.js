// The form of /docs/api/…/try: sends one request, with the token that was typed or with the reader's session.

import { all } from "./page.js";

const form = document.querySelector("[data-try]");
const answer = document.querySelector("[data-answer]");

function address() {
  const query = new URLSearchParams();
  let path = form.dataset.path;
  for (const input of all("[data-in]", form)) {
    if (input.dataset.in === "path") path = path.replace(`{${input.name}}`, encodeURIComponent(input.value));
    else if (input.value) query.set(input.name, input.value);
  }
  return query.size ? `${path}?${query}` : path;
}

function request() {
  const bearer = form.querySelector("[data-bearer]")?.value.trim();
  const body = form.querySelector("[data-body]")?.value;
  const headers = { Accept: "application/json" };
  if (bearer) headers.Authorization = `Bearer ${bearer}`;
  if (body) headers["Content-Type"] = "application/json";
  // A token alone decides: the session stays behind.
  return { method: form.dataset.method, headers, body, credentials: bearer ? "omit" : "same-origin" };
}

function shown(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

async function send(event) {
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    const got = await fetch(address(), request());
    answer.querySelector("[data-status]").textContent = `${got.status} ${got.statusText}`;
    answer.querySelector("[data-content]").textContent = shown(await got.text());
  } catch (fault) {
    answer.querySelector("[data-status]").textContent = fault.message;
    answer.querySelector("[data-content]").textContent = "";
  } finally {
    button.disabled = false;
    answer.hidden = false;
  }
}

form.hidden = false;
form.addEventListener("submit", send);
