import { createHash } from "node:crypto";
import type { Receipt } from "./receipt.ts";

const style = `
:root { color-scheme: light dark; --text: #1a1a1a; --quiet: #5c5c5c; --line: #d9d9d9; --page: #fff }
@media (prefers-color-scheme: dark) {
  :root { --text: #ededed; --quiet: #a3a3a3; --line: #3a3a3a; --page: #111 }
}
body { margin: 0; padding: 24px 16px; background: var(--page); color: var(--text);
  font: 14px/20px system-ui, sans-serif }
main { max-width: 640px; margin: 0 auto }
h1 { margin: 0 0 4px; font-size: 28px; line-height: 36px; font-variant-numeric: tabular-nums }
p { margin: 0 0 24px; color: var(--quiet) }
h2 { margin: 24px 0 8px; font-size: 16px; line-height: 24px }
dl { display: grid; grid-template-columns: minmax(96px, max-content) 1fr; margin: 0 }
dt, dd { margin: 0; padding: 8px 0; border-top: 1px solid var(--line) }
dt { padding-right: 16px; color: var(--quiet) }
dd { overflow-wrap: anywhere; font-variant-numeric: tabular-nums; unicode-bidi: isolate }
@media print {
  :root { color-scheme: light; --text: #000; --quiet: #444; --line: #bbb; --page: #fff }
  body { padding: 0 }
  dl { break-inside: avoid }
}
`;

const styleHash = createHash("sha256").update(style).digest("base64");

/**
 * A receipt as a page to read and to print: no script, nothing from elsewhere. Texts of sellers and
 * buyers are escaped.
 */
export function receiptPage(receipt: Receipt): string {
  const { amount, value, token, state, paidAt, refunds } = receipt;
  const sum = amount === null ? `${value} units of ${token}` : `${amount} ${token}`;
  const rows: [name: string, value: string | null][] = [
    ["For", receipt.route],
    ["Resource", receipt.resource],
    ["Paid", paidAt],
    ["State", state === "final" ? "final" : "pending: the chain may still take it back"],
    ["Delivered", receipt.deliveredAt],
    ["From", receipt.payer],
    ["To", receipt.payTo],
    ["Network", receipt.network],
    ["Token", receipt.asset],
    ["Transaction", receipt.transaction],
    ["Block", String(receipt.block)],
    ["Payment", receipt.id],
  ];
  const given = refunds.map(({ amount: back, value: units, transaction, at }) => {
    const words = back === null ? `${units} units` : `${back} ${token}`;
    return list([
      ["Given back", words],
      ["At", at],
      ["Transaction", transaction],
    ]);
  });
  const heading = given.length === 0 ? "" : "<h2>Refunds</h2>\n";
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; form-action 'none'">
<title>Receipt, ${escapeMarkup(sum)}</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${escapeMarkup(sum)}</h1>
<p>Receipt</p>
${list(rows)}${heading}${given.join("")}</main>
</body>
</html>
`;
}

function list(rows: readonly (readonly [name: string, value: string | null])[]): string {
  const lines = rows.flatMap(([name, value]) =>
    value === null ? [] : [`<dt>${name}</dt><dd>${escapeMarkup(value)}</dd>\n`],
  );
  return `<dl>\n${lines.join("")}</dl>\n`;
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Escapes markup; direction marks and other controls, which would reorder it, are shown. */
function escapeMarkup(text: string): string {
  return text
    .replace(/[&<>"']/g, (character) => entities[character] ?? "")
    .replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => {
      const code = character.codePointAt(0) ?? 0;
      return `\\u{${code.toString(16)}}`;
    });
}
