import { describePrice, escapeHtml, type PageDemand, type Paywall } from "@coinslot/protocol";

/** The page without a paywall: what is sold, its price, and the command that pays. No script. */
export const plainPage: Paywall = { writePage };

function writePage(demand: PageDemand): string {
  const { resource, accepts, command, form, nonce } = demand;
  const title = resource.description ?? "This page is for sale";
  const ways = accepts.map(describePrice);
  const lines = accepts.map(({ network, asset, payTo, amount }, index) => {
    const way = ways[index];
    const price =
      way && `${way.amount}${way.decimals === undefined ? " units of" : ""} ${way.symbol}`;
    return `<section>
<p class="price">${escapeHtml(price ?? amount)}</p>
<dl>
<dt>Network</dt><dd>${escapeHtml(way?.networkName ?? network)} <code>${escapeHtml(network)}</code></dd>
<dt>Token</dt><dd><code>${escapeHtml(asset)}</code></dd>
<dt>Paid to</dt><dd><code>${escapeHtml(payTo)}</code></dd>
</dl>
</section>`;
  });
  const pay = command
    ? `<p>This command pays and prints the answer:</p>
<pre><code>${escapeHtml(command)}</code></pre>`
    : form.state === "lost"
      ? "<p>The form that led here was not kept. Send it by a program that pays.</p>"
      : "<p>A program that speaks x402 can pay for this address.</p>";
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${escapeHtml(title)} · 402</title>
<style nonce="${escapeHtml(nonce)}">${style}</style>
</head>
<body>
<main>
<h1>${escapeHtml(title)}</h1>
<p class="url">${escapeHtml(resource.url)}</p>
${lines.join("\n<p>or</p>\n")}
${pay}
<p class="quiet">402 Payment Required. Nothing has been charged.</p>
</main>
</body>
</html>
`;
}

const style = `
:root{color-scheme:light dark;--text:#16181d;--quiet:#5b6270;--line:#d9dce3;--ground:#fff;--field:#f4f5f7}
@media(prefers-color-scheme:dark){:root{--text:#eceef2;--quiet:#a3aab8;--line:#343944;--ground:#14161a;--field:#1f2228}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--text);font:16px/1.5 system-ui,sans-serif}
main{max-width:640px;margin:0 auto;padding:48px 16px}
h1{font-size:20px;line-height:1.3;margin:0;overflow-wrap:anywhere}
.url,.quiet,dt{color:var(--quiet);font-size:14px}
.url{margin:4px 0 24px;overflow-wrap:anywhere}
section{border:1px solid var(--line);border-radius:8px;padding:16px}
.price{font-size:28px;line-height:1.2;margin:0 0 12px;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
dl{margin:0;display:grid;grid-template-columns:auto 1fr;gap:4px 16px}
dd{margin:0;min-width:0;overflow-wrap:anywhere}
code{font:14px/1.5 ui-monospace,monospace}
pre{background:var(--field);border-radius:8px;padding:12px;white-space:pre-wrap;overflow-wrap:anywhere}
`;
