import { randomBytes } from "node:crypto";
import { escapeHtml, knownChains } from "@coinslot/protocol";
import { RefusedError, refusals } from "../api/refusal.ts";
import type { Visit } from "../visit.ts";
import type { Assets } from "./assets.ts";
import { setSecurityHeaders } from "./security-headers.ts";

/** Name of each known chain, and ticker of the coin that pays for its gas, by network. */
const networks = JSON.stringify(
  Object.fromEntries(
    knownChains.map(({ network, name, nativeCurrency }) => [
      network,
      { name, coin: nativeCurrency.symbol },
    ]),
  ),
);

/**
 * Answers with the page's shell: no data of the seller, so it needs no session.
 *
 * @throws RefusedError where the pages are not built
 */
export function sendShell({ response, base }: Visit, assets: Assets): void {
  const entry = assets.entry();
  if (entry === undefined) throw new RefusedError(refusals.notBuilt);
  const nonce = randomBytes(16).toString("base64");
  setSecurityHeaders(response, nonce);
  const root = escapeHtml(base);
  const styles = entry.styles.map(
    (name) => `<link rel="stylesheet" href="${root}/assets/${escapeHtml(name)}">`,
  );
  response.writeHead(200, { "Content-Type": "text/html; charset=utf-8" });
  response.end(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="coinslot-base" content="${root}">
<meta name="coinslot-networks" content="${escapeHtml(networks)}">
<meta property="csp-nonce" nonce="${nonce}">
<title>Console</title>
<link rel="icon" href="data:,">
${styles.join("\n")}
<script type="module" nonce="${nonce}" src="${root}/assets/${escapeHtml(entry.script)}"></script>
</head>
<body>
<div id="console"></div>
<noscript>The console needs JavaScript. Every page is a coinslot command, too: coinslot --help.</noscript>
</body>
</html>
`);
}
