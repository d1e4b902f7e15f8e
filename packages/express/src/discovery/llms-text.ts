import type { DiscoverySettings } from "./discovery-options.ts";
import { writeGuidance } from "./guidance.ts";
import type { ListedRoute } from "./list-routes.ts";
import { type TemplateParameter, writeTemplate } from "./path-template.ts";
import { type PaymentInfo, type PricedRoute, priceRoute } from "./priced-route.ts";
import { quotableUrl } from "./quotable-url.ts";

/** Routes in the list: a text for a model's context. The document has them all. */
const maxRoutes = 100;

/** `llms.txt` of some routes, in the form of llmstxt.org, with examples of a paid call. */
export function* writeLlmsText(
  routes: readonly ListedRoute[],
  settings: DiscoverySettings,
): Generator<string> {
  const { title, description, publicUrl = "" } = settings;
  const guidance = yield* writeGuidance(routes, settings);
  const shown = routes.slice(0, maxRoutes).map(priceRoute);
  const more = routes.length - shown.length;
  const lines = [
    `# ${inMarkdown(title)}`,
    "",
    ...(description === undefined ? [] : [`> ${inMarkdown(description)}`, ""]),
    guidance,
    "",
    "## Sold",
    "",
    ...shown.map((route) => lineOf(route, publicUrl)),
    ...(more > 0 ? [`- ${more} more in the OpenAPI document`] : []),
    "",
    ...writeExamples(routes, settings),
    "## Optional",
    "",
    `- [OpenAPI document](${publicUrl}/openapi.json): every sold request, with its price`,
  ];
  yield `${lines.join("\n")}\n`;
}

function lineOf(
  { method, template, route, discovery, payment }: PricedRoute,
  origin: string,
): string {
  const summary = discovery.summary ?? route.description;
  const about = summary === undefined ? "" : `${inMarkdown(summary)}; `;
  const path = writeTemplate(template);
  return `- [${inMarkdown(`${method} ${path}`)}](${quotableUrl(origin + path)}): ${about}${priceOf(payment)}`;
}

function priceOf({ price }: PaymentInfo): string {
  if (price.mode === "fixed") return `$${price.amount}`;
  const { min, max } = price;
  if (min !== undefined && max !== undefined) return `$${min} to $${max}`;
  if (max !== undefined) return `up to $${max}`;
  return min === undefined ? "the price is in the 402" : `from $${min}`;
}

/** The same purchase by a command, in JavaScript, and as messages. */
function writeExamples(
  routes: readonly ListedRoute[],
  { publicUrl }: DiscoverySettings,
): readonly string[] {
  const get = routes.filter(({ method }) => method === "GET");
  const plain = get.find(({ template }) => template.parameters.length === 0);
  const [first] = plain ? [plain] : get;
  if (first === undefined) return [];
  const path = quotableUrl(writeTemplate(first.template, exampleOf(first)));
  const url = publicUrl === undefined ? `$ORIGIN${path}` : quotableUrl(publicUrl) + path;
  const names = priceRoute(first).payment.protocols.flatMap(Object.keys);
  return [
    "## Examples",
    "",
    ...(publicUrl === undefined ? ["`$ORIGIN` is the origin of this file.", ""] : []),
    "With a command:",
    "",
    ...fence("sh", [`npx @coinslot/cli pay "${url}"`]),
    "In JavaScript:",
    "",
    ...fence("js", [
      'import { createPayingFetch } from "@coinslot/client";',
      "",
      "const pay = createPayingFetch({ account, rpcUrls }); // a viem account, an RPC URL for each network",
      `const response = await pay(${JSON.stringify(url)});`,
    ]),
    ...(names.includes("x402") ? writeX402(path) : []),
    ...(names.includes("mpp") ? writeMpp(path) : []),
  ];
}

function writeX402(path: string): readonly string[] {
  return [
    "By x402 version 2:",
    "",
    ...fence("text", [
      `GET ${path}`,
      "402 PAYMENT-REQUIRED: <base64 of JSON with accepts>",
      "",
      `GET ${path}`,
      "PAYMENT-SIGNATURE: <base64 of JSON with accepted, and its signed EIP-3009 authorization>",
      "200 PAYMENT-RESPONSE: <base64 of JSON with the transaction>",
    ]),
  ];
}

function writeMpp(path: string): readonly string[] {
  return [
    "By MPP:",
    "",
    ...fence("text", [
      `GET ${path}`,
      '402 WWW-Authenticate: Payment id="…", method="evm", intent="charge", request="…"',
      "",
      `GET ${path}`,
      "Authorization: Payment <base64url of JSON with challenge, and its signed EIP-3009 authorization>",
      "200 Payment-Receipt: <base64url of JSON with the transaction>",
    ]),
  ];
}

function fence(language: string, lines: readonly string[]): readonly string[] {
  return [`\`\`\`${language}`, ...lines, "```", ""];
}

/** The value of a parameter in an example: the seller's, or its name in braces. */
function exampleOf({ discovery }: ListedRoute): (parameter: TemplateParameter) => string {
  return ({ name }) => {
    const told = discovery.parameters.find((each) => each.in === "path" && each.name === name);
    const example = told?.example;
    return typeof example === "string" || typeof example === "number"
      ? encodeURIComponent(example)
      : `{${name}}`;
  };
}

/** Text without line breaks, and without signs that Markdown or HTML would read. */
function inMarkdown(text: string): string {
  return text
    .replace(/[\s\p{Cc}]+/gu, " ")
    .replace(/[\\`*_[\]<>#|~&]/g, "\\$&")
    .trim();
}
