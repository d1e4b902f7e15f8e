import { describePrice, escapeHtml, type PageDemand, scriptJson } from "@coinslot/protocol";
import type { PageData } from "./page-data.ts";
import type { PaywallSettings } from "./paywall-options.ts";
import { qrCode } from "./qr-code.ts";
import type { Assets } from "./read-assets.ts";

/**
 * Writes the document. It can be read and paid from without its script, which adds wallets.
 * `innerHTML` and the like do not occur in either: text is escaped here, and set as text there.
 */
export function writeDocument(options: {
  demand: PageDemand;
  data: PageData;
  settings: PaywallSettings;
  assets: Assets;
}): string {
  const { demand, data, settings, assets } = options;
  const { resource, nonce } = demand;
  const { texts, language } = data;
  const title = resource.description ?? texts.title;
  const heading = settings.name === undefined ? title : `${title} · ${settings.name}`;
  const quotedNonce = escapeHtml(nonce);
  return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${escapeHtml(heading)}</title>
<link rel="icon" href="data:,">
<style nonce="${quotedNonce}">${assets.style}${accentOf(settings)}</style>
</head>
<body>
<main>
${sellerOf(settings)}
<h1>${escapeHtml(title)}</h1>
${priceOf(demand, data, settings)}
<section id="pay" hidden></section>
<div id="status" role="status" aria-live="polite"></div>
${otherWays(demand, data)}
${detailsOf(demand, data)}
</main>
<script type="application/json" id="data">${scriptJson(data)}</script>
<script type="module" nonce="${quotedNonce}">${assets.script}</script>
</body>
</html>
`;
}

function accentOf({ accent }: PaywallSettings): string {
  if (accent === undefined) return "";
  const { light, dark } = typeof accent === "string" ? { light: accent, dark: accent } : accent;
  const rule = (colour: string) => `:root{--accent:${colour};--on-accent:${readableOn(colour)}}`;
  return `${rule(light)}@media(prefers-color-scheme:dark){${rule(dark)}}`;
}

/** Black or white, by the larger contrast to a colour (WCAG 2.2, relative luminance). */
function readableOn(colour: string): string {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((start) => {
    const value = Number.parseInt(colour.slice(start, start + 2), 16) / 255;
    return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return luminance > 0.179 ? "#000000" : "#ffffff";
}

function sellerOf({ name, logo }: PaywallSettings): string {
  if (name === undefined && logo === undefined) return "";
  const alt = name === undefined ? "" : escapeHtml(name);
  const image =
    logo === undefined ? "" : `<img src="${escapeHtml(logo)}" alt="" width="32" height="32">`;
  return `<p class="seller">${image}${alt}</p>`;
}

function priceOf(
  { accepts }: PageDemand,
  { texts }: PageData,
  { chains = {} }: PaywallSettings,
): string {
  const lines = accepts.map((way) => {
    const { amount, symbol, networkName } = describePrice(way);
    const name = chains[way.network]?.name ?? networkName;
    const network = texts.network.replace("{network}", () => name);
    return `<p class="price"><b>${escapeHtml(amount)}</b> ${escapeHtml(symbol)} <span>${escapeHtml(network)}</span></p>`;
  });
  return `<div id="prices">${lines.join("")}</div>`;
}

function otherWays({ resource, command, form }: PageDemand, { texts }: PageData): string {
  const code = form.state === "none" ? qrCode(resource.url) : undefined;
  const phone = code ? `<p>${escapeHtml(texts.phone)}</p>${code}` : "";
  const terminal = command
    ? `<p>${escapeHtml(texts.command)}</p><pre><code>${escapeHtml(command)}</code></pre>`
    : "";
  const lost = form.state === "lost" ? `<p>${escapeHtml(texts.formLost)}</p>` : "";
  return `<details id="otherwise" open><summary>${escapeHtml(texts.otherwise)}</summary>${lost}${phone}${terminal}</details>`;
}

function detailsOf({ resource, accepts }: PageDemand, { texts }: PageData): string {
  const rows = accepts.flatMap(({ payTo, asset }): [string, string][] => [
    [texts.recipient, payTo],
    [texts.token, asset],
  ]);
  const all: [string, string][] = [[texts.address, resource.url], ...rows];
  const list = all.map(
    ([name, value]) => `<dt>${escapeHtml(name)}</dt><dd>${escapeHtml(value)}</dd>`,
  );
  return `<details><summary>${escapeHtml(texts.details)}</summary><dl>${list.join("")}</dl><p>${escapeHtml(texts.transfer)}</p></details>`;
}
