import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import { escapeHtml } from "@coinslot/protocol";
import type { Refusal } from "../api/refusal.ts";
import { setSecurityHeaders } from "./security-headers.ts";

/** Answers with a page that says what happened, what to do, and a code to search for. */
export function sendErrorPage(response: ServerResponse, refusal: Refusal): void {
  const { status, code, message, remedy = "" } = refusal;
  const nonce = randomBytes(16).toString("base64");
  setSecurityHeaders(response, nonce);
  response.writeHead(status, { "Content-Type": "text/html; charset=utf-8" });
  response.end(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Console: ${escapeHtml(message)}</title>
<style nonce="${nonce}">
body { font: 16px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 4rem auto; padding: 0 1rem; }
h1 { font-size: 20px; }
code { font-size: 14px; }
</style>
</head>
<body>
<main>
<h1>${escapeHtml(message)}</h1>
<p>${escapeHtml(remedy)}</p>
<p><code>${escapeHtml(code)}</code></p>
</main>
</body>
</html>
`);
}
