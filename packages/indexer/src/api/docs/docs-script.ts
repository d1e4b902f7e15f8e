/** The script of the page. It runs in the browser as it stands here, so it is plain JavaScript. */
export const docsScript = String.raw`
"use strict";
const base = location.pathname.replace(/docs\/?$/, "");
const keyInput = document.getElementById("key");
const formats = { JSON: "application/json", CSV: "text/csv", "live events": "text/event-stream" };

function element(name, properties, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

function resolve(api, schema) {
  return schema.$ref ? api.components.schemas[schema.$ref.split("/").pop()] : schema;
}

function exampleOf(api, schema) {
  const { examples, type, items, properties = {}, required = [] } = resolve(api, schema);
  if (examples) return examples[0];
  if (type === "array") return [exampleOf(api, items)];
  if (type !== "object") return type === "string" ? "" : 0;
  const names = required.length ? required : Object.keys(properties);
  return Object.fromEntries(names.map((name) => [name, exampleOf(api, properties[name])]));
}

function fieldFor(api, parameter) {
  const { enum: options, default: usual, examples } = resolve(api, parameter.schema);
  const name = parameter.name;
  const input = options
    ? element("select", { name }, ...options.map((value) => element("option", { value, selected: value === usual }, value)))
    : element("input", {
        name,
        value: parameter.in === "path" && examples ? examples[0] : "",
        placeholder: usual === undefined ? "" : String(usual),
        required: parameter.required,
        spellcheck: false,
        autocomplete: "off",
      });
  if (["blockchain", "token"].includes(name)) input.setAttribute("list", "known-" + name);
  const wide = ["address", "txHash", "hashedKey"].includes(name) ? "wide" : "";
  return element("label", { className: wide, title: parameter.description || "" }, name, input);
}

function requestOf({ method, path, parameters }, form) {
  const values = new FormData(form);
  const search = new URLSearchParams();
  const headers = {};
  let target = path.slice(1);
  for (const { name, in: place, schema } of parameters) {
    const value = values.get(name);
    if (place === "path") target = target.replace("{" + name + "}", encodeURIComponent(value));
    else if (value && place === "header") headers[name] = value;
    else if (value && value !== String(schema.default)) search.set(name, value);
  }
  if (keyInput.value) headers["x-api-key"] = keyInput.value.trim();
  const format = values.get("format");
  if (format && format !== formats.JSON) headers.accept = format;
  const body = values.get("body");
  if (body !== null) headers["content-type"] = "application/json";
  const query = search.size ? "?" + search : "";
  return { method: method.toUpperCase(), url: base + target + query, headers, body };
}

function asCurl({ method, url, headers, body }) {
  const quote = (text) => "'" + text.replaceAll("'", "'\\''") + "'";
  return [
    "curl" + (headers.accept === formats["live events"] ? " -N" : ""),
    ...(method === "GET" || (method === "POST" && body !== null) ? [] : ["-X " + method]),
    ...Object.entries(headers).map(([name, value]) =>
      name === "x-api-key" ? '-H "x-api-key: $API_KEY"' : "-H " + quote(name + ": " + value)),
    ...(body === null ? [] : ["-d " + quote(body)]),
    quote(location.origin + url),
  ].join(" ");
}

function describeHeaders(headers) {
  return ["ratelimit", "retry-after", "link"]
    .filter((name) => headers.has(name))
    .map((name) => name + ": " + headers.get(name))
    .join("\n");
}

async function showBody(response, output) {
  if ((response.headers.get("content-type") || "").startsWith("application/json")) {
    output.textContent = JSON.stringify(await response.json(), null, 2);
    return;
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    output.append(value);
    output.scrollTop = output.scrollHeight;
  }
}

function operationCard(api, operation) {
  const { method, path, summary, description, parameters, requestBody } = operation;
  const limit = operation["x-rate-limit"];
  const body = requestBody && requestBody.content["application/json"].schema;
  const isHistory = operation.operationId === "getTokenTransfers";
  const status = element("span", { className: "status" });
  const stop = element("button", { type: "button", hidden: true }, "Stop");
  const next = element("button", { type: "button", hidden: true }, "Next page");
  const [curl, headers, output] = [0, 1, 2].map(() => element("pre", { hidden: true }));
  const form = element("form", {},
    ...(description ? [element("p", { className: "hint" }, description.replaceAll("\u0060", ""))] : []),
    element("div", { className: "fields" },
      ...parameters.map((parameter) => fieldFor(api, parameter)),
      ...(isHistory ? [element("label", {}, "answer as", element("select", { name: "format" },
        ...Object.entries(formats).map(([name, value]) => element("option", { value }, name))))] : [])),
    ...(body ? [element("label", {}, "body", element("textarea", {
      name: "body", spellcheck: false, value: JSON.stringify(exampleOf(api, body), null, 2) }))] : []),
    element("div", { className: "actions" },
      element("button", { className: "main" }, "Send"), next, stop, status,
      element("span", { className: "hint" },
        limit.max + " requests per " + (limit.windowSeconds === 3600 ? "hour" : limit.windowSeconds + " s"))),
    curl, headers, output);
  let running = new AbortController();

  async function send() {
    running.abort();
    running = new AbortController();
    const request = requestOf(operation, form);
    const { url, ...init } = request;
    for (const node of [curl, headers, output]) node.hidden = false;
    curl.textContent = asCurl(request);
    headers.textContent = output.textContent = "";
    status.textContent = "…";
    stop.hidden = !["text/csv", "text/event-stream"].includes(request.headers.accept);
    try {
      const response = await fetch(url, { ...init, signal: running.signal });
      status.textContent = response.status + " " + response.statusText;
      status.className = "status " + (response.ok ? "good" : "bad");
      headers.textContent = describeHeaders(response.headers);
      headers.hidden = headers.textContent === "";
      const link = /<([^>]+)>; rel="next"/.exec(response.headers.get("link") || "");
      next.hidden = !link;
      if (link) next.onclick = () => {
        form.elements.cursor.value = new URL(link[1], location.href).searchParams.get("cursor");
        form.requestSubmit();
      };
      await showBody(response, output);
    } catch (error) {
      if (error.name !== "AbortError") output.textContent = String(error);
    } finally {
      stop.hidden = true;
    }
  }
  stop.onclick = () => running.abort();
  form.onsubmit = (event) => { event.preventDefault(); send(); };

  return element("details", {},
    element("summary", {},
      element("span", { className: "method " + method }, method.toUpperCase()),
      element("span", { className: "path" }, path),
      element("span", { className: "about" }, summary)),
    form);
}

/** Suggests the names of the served chains and tokens in the fields. */
async function learnNames() {
  const headers = keyInput.value ? { "x-api-key": keyInput.value.trim() } : {};
  const response = await fetch(base + "api/v1/chains", { headers });
  if (!response.ok) return;
  const { chains } = await response.json();
  const names = { blockchain: chains.map(({ name }) => name), token: [...new Set(chains.flatMap(({ tokens }) => tokens))] };
  for (const [kind, values] of Object.entries(names)) {
    document.getElementById("known-" + kind)?.remove();
    document.body.append(element("datalist", { id: "known-" + kind }, ...values.map((value) => element("option", { value }))));
    for (const input of document.querySelectorAll('input[name="' + kind + '"]')) {
      if (!values.includes(input.value)) input.value = values[0];
    }
  }
  for (const body of document.querySelectorAll("textarea")) {
    body.value = body.value
      .replace(/("blockchain": )"[^"]*"/, (_, name) => name + JSON.stringify(chains[0].name))
      .replace(/("token": )"[^"]*"/, (_, name) => name + JSON.stringify(chains[0].tokens[0]));
  }
}

async function start() {
  const api = await (await fetch(base + "openapi.json")).json();
  document.getElementById("title").textContent = api.info.title;
  document.getElementById("summary").textContent = api.info.summary;
  const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method, path })));
  const main = document.getElementById("operations");
  main.replaceChildren(...api.tags.flatMap(({ name }) => [
    element("h2", {}, name),
    ...operations.filter(({ tags }) => tags.includes(name)).map((operation) => operationCard(api, operation)),
  ]));
  document.getElementById("key-field").hidden = api.security.length === 0;
  keyInput.value = sessionStorage.getItem("x-api-key") || "";
  keyInput.onchange = () => {
    sessionStorage.setItem("x-api-key", keyInput.value);
    learnNames();
  };
  if (keyInput.value || api.security.length === 0) learnNames();
}

start().catch((error) => {
  document.getElementById("operations").textContent = "The description could not be loaded: " + error;
});
`;
