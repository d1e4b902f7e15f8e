// The product, to be tried by hand until Ctrl-C: a chain, an indexing service, a seller of its
// data, the operator's console and an inspector.
import { once } from "node:events";
import type { Inspector } from "@coinslot/inspector";
import { ConfigurationError, formatMoney } from "@coinslot/protocol";
import { type Market, openMarket } from "./demo/market.ts";
import { type OpenedConsole, openConsole } from "./demo/open-console.ts";
import { openInspector } from "./demo/open-inspector.ts";
import { paint } from "./demo/print.ts";

const usualPort = "4021";
const transferEveryMs = 2_000;

async function main(): Promise<void> {
  const stop = Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
  const market = await openMarket({ port: readPort(process.env.PAID_INDEXER_PORT || usualPort) });
  // A chain that is about to end accepts no more payments, and they are not missed.
  const timer = setInterval(
    () => void market.makeTransfer().catch(() => undefined),
    transferEveryMs,
  );
  let inspector: Inspector | undefined;
  let operators: OpenedConsole | undefined;
  try {
    inspector = await openInspector(market);
    operators = await openConsole(market);
    console.log(firstCommands(market, inspector, operators));
    await stop;
  } finally {
    clearInterval(timer);
    await operators?.close();
    await inspector?.close();
    await market.close();
  }
  console.log("Stopped.");
}

function readPort(text: string): number {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (port <= 65_535) return port;
  const problem = "PAID_INDEXER_PORT: must be a whole number from 0 to 65535";
  throw new ConfigurationError("The example", [problem]);
}

function firstCommands(
  { devnet, url, price, people }: Market,
  inspector: Inspector,
  operators: OpenedConsole,
): string {
  const { accounts, network, rpcUrl } = devnet;
  const [{ address }] = people;
  const owner = `${url}/api/v1/plasma/usdt/${address}`;
  const cost = `$${formatMoney(price, 6)}`;
  const heading = (text: string) => paint(["bold", "cyan"], text);
  return `
${heading("Selling the indexing API")} at ${url}, ${cost} a request, on a local Plasma at ${rpcUrl}.
${address} makes a payment every two seconds.

${heading("Free")}

curl ${url}/api/v1/chains
curl ${url}/api/v1/health

${heading("402: what it costs, and where to pay")}

curl -i ${owner}/token-balances
curl -i -H "content-type: application/json" -d '[{"blockchain":"plasma","token":"usdt","address":"${address}"}]' ${url}/api/v1/batch/token-balances

${heading("Pay in a terminal")}, as the buyer of this chain, whose key is public. In another one, in this folder:

export COINSLOT_NETWORK=${network} COINSLOT_RPC_URL=${rpcUrl} WALLET_PRIVATE_KEY=${accounts.buyer.privateKey}
npm run -s coinslot -- pay "${owner}/token-transfers?limit=3" --yes
npm run -s coinslot -- pay ${url}/api/v1/batch/token-balances -d '[{"blockchain":"plasma","token":"usdt","address":"${address}"}]' --yes

${heading("Paywall")}: pay in a browser, with a wallet that has that key, and ${network} with ${rpcUrl}

${owner}/token-balances

${heading("Console")}: find and refund payments, as the operator. The link signs one browser in, once, within ten minutes

${operators.link}

${heading("Inspector")}: see each offer, payment and receipt. Ask ${inspector.proxyUrl} in place of ${url}, and open

${inspector.pageUrl}

Ctrl-C stops it.`;
}

main().catch((error: unknown) => {
  console.error(error instanceof ConfigurationError ? error.message : error);
  process.exit(1);
});
