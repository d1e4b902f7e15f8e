import { createHash } from "node:crypto";
import { docsScript } from "./docs-script.ts";
import { docsStyle } from "./docs-style.ts";

/**
 * A page to try the API: one file without external resources, built in the browser from
 * `/openapi.json`.
 */
export const docsPage = {
  html: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Token transfers and balances</title>
<link rel="icon" href="data:,">
<style>${docsStyle}</style>
</head>
<body>
<header>
  <div>
    <h1 id="title">Token transfers and balances</h1>
    <p id="summary"></p>
  </div>
  <label id="key-field" class="key" hidden>API key
    <input id="key" type="password" autocomplete="off" spellcheck="false" placeholder="csk_…">
  </label>
</header>
<main id="operations"><p class="notice">Loading …</p></main>
<footer>Described by <a href="openapi.json">openapi.json</a>. The key stays in this tab.</footer>
<noscript><p class="notice">This page needs JavaScript; openapi.json does not.</p></noscript>
<script>${docsScript}</script>
</body>
</html>
`,
  /**
   * Content security policy: only the page's own style and script run, and connect only to this
   * server.
   */
  contentSecurityPolicy: [
    "default-src 'none'",
    `style-src ${sourceHash(docsStyle)}`,
    `script-src ${sourceHash(docsScript)}`,
    "connect-src 'self'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
} as const;

function sourceHash(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}
