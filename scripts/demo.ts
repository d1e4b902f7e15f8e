// The product, end to end, on its own chain: free and priced routes, signatures, purchases, a check
// against the chain, a refund, and the books.
import { createPayingFetch } from "@coinslot/client";
import { ApiError, createIndexerClient, type IndexerClient } from "@coinslot/indexer";
import { decodePaymentV2, formatMoney, headerName } from "@coinslot/protocol";
import { balanceOf, requireTrueBalances, requireTrueTransfers } from "./demo/chain-truth.ts";
import { type Exchange, noteExchanges } from "./demo/counter.ts";
import { type Market, openMarket } from "./demo/market.ts";
import { facts, paint, step, table } from "./demo/print.ts";
import { refundFirst } from "./demo/refund-first.ts";
import { runCommand } from "./demo/run-command.ts";

const decimals = 6;
const tokens = (amount: bigint) => `${formatMoney(amount, decimals)} USDT0`;

const market = await openMarket();
try {
  await demo(market);
} finally {
  await market.close();
}

async function demo(market: Market): Promise<void> {
  const { devnet, url, people } = market;
  const { buyer, seller, relayer } = devnet.accounts;
  const [subject] = people;
  const owner = { blockchain: "plasma", token: "usdt", address: subject.address };
  const everybody = people.map(({ address }) => ({ ...owner, address }));

  step(1, "A chain, an indexing service that follows it, and a seller of its data");
  facts({
    network: `${devnet.network} (a local Plasma), token ${devnet.token} USDT0`,
    seller: `${url}, paid at ${seller.address}`,
    buyer: `${buyer.address}, holds ${tokens(await balanceOf(devnet, buyer.address))}`,
    relayer: `${relayer.address}, pays the gas`,
  });

  step(2, "Health and the list of chains are free");
  const visitor = noteExchanges(fetch);
  const free = createIndexerClient({ url, fetch: visitor.fetch });
  facts({
    "GET /api/v1/health": (await free.getHealth()).status,
    "GET /api/v1/chains": JSON.stringify((await free.listChains()).chains),
  });

  step(3, "The data cost: three requests, unpaid");
  visitor.exchanges.length = 0;
  for (const ask of [askTransfers, askBalance, askBatch]) await requireRefusal(ask(free));
  table([
    ["", "answer", "price"],
    ...visitor.exchanges.map((exchange) => [
      titleOf(exchange),
      `${exchange.status} Payment Required`,
      tokens(exchange.asked ?? 0n),
    ]),
  ]);

  step(4, "For each the buyer signs a transfer, and repeats the request");
  const before = await balances();
  const counter = noteExchanges(
    createPayingFetch({
      account: buyer,
      rpcUrls: { [devnet.network]: devnet.rpcUrl },
      budget: { perPayment: "$0.01" },
      fetch: showFirstPayment(),
    }),
  );
  const paying = createIndexerClient({ url, fetch: counter.fetch });
  const { transfers } = await askTransfers(paying);
  const { tokenBalance } = await askBalance(paying);
  const batch = await askBatch(paying);

  step(5, "The seller verifies, calls the service, settles on chain, and answers");
  table([
    ["", "answer", "took", "transaction"],
    ...counter.exchanges.map((exchange) => [
      titleOf(exchange),
      `${exchange.status}`,
      `${exchange.milliseconds.toFixed(0)} ms`,
      settledIn(exchange),
    ]),
  ]);

  step(6, "The bought data equal the chain's");
  await requireTrueTransfers(devnet, subject.address, transfers);
  await requireTrueBalances(devnet, [[subject.address, tokenBalance.amount]]);
  const amounts = batch.map((item) => ("tokenBalance" in item ? item.tokenBalance.amount : ""));
  await requireTrueBalances(
    devnet,
    people.map(({ address }, index) => [address, amounts[index] ?? ""] as const),
  );
  facts({
    transfers: `${transfers.length} of ${subject.address}, the same as in the chain's logs`,
    balance: `${tokens(BigInt(tokenBalance.amount))}, the same as in the token contract`,
    batch: `${amounts.map((amount) => tokens(BigInt(amount))).join(", ")}: the same`,
  });

  step(7, "The tokens have moved: the seller's income, and no fee but gas");
  const after = await balances();
  table([
    ["", "before", "after", "difference"],
    ...after.map(({ name, amount }, index) => {
      const was = before[index]?.amount ?? 0n;
      const difference = `${amount > was ? "+" : ""}${formatMoney(amount - was, decimals)}`;
      return [name, formatMoney(was, decimals), tokens(amount), paint("green", difference)];
    }),
  ]);

  await closeBooks(market);
  console.log(
    `\n${paint("bold", "Sold.")} To try it yourself: npm start. To sell an API of yours: apps/paid-indexer.`,
  );

  function askTransfers(client: IndexerClient) {
    return client.getTokenTransfers({ ...owner, limit: 5 });
  }

  function askBalance(client: IndexerClient) {
    return client.getTokenBalances(owner);
  }

  function askBatch(client: IndexerClient) {
    return client.batchTokenBalances(everybody);
  }

  async function balances() {
    return Promise.all(
      Object.entries({ buyer, seller }).map(async ([name, { address }]) => ({
        name,
        amount: await balanceOf(devnet, address),
      })),
    );
  }
}

/** The seller's side: a purchase goes back, and the books agree with the chain. */
async function closeBooks(market: Market): Promise<void> {
  step(8, "The first purchase goes back to the buyer, from the seller's float account");
  const refund = await refundFirst(market);
  facts({
    refund: `${tokens(refund.amount)} to ${refund.payer}, final`,
    transaction: refund.transactionHash ?? "",
  });

  step(9, "The books: each movement of money, beside the chain");
  await runCommand(market, ["books", "show"]);
  await runCommand(market, ["books", "check"]);
}

/** A `fetch` that prints the first payment which goes through it. */
function showFirstPayment(): typeof fetch {
  let isShown = false;
  return async function send(input, init) {
    const signed = new Request(input, init).headers.get(headerName.paymentSignature);
    if (signed !== null && !isShown) {
      isShown = true;
      const { authorization, signature } = decodePaymentV2(signed).payload;
      facts({
        from: authorization.from,
        to: authorization.to,
        value: tokens(BigInt(authorization.value)),
        "valid until": new Date(Number(authorization.validBefore) * 1000).toISOString(),
        nonce: authorization.nonce,
        signature: `${signature.slice(0, 34)}…`,
      });
    }
    return fetch(input, init);
  };
}

async function requireRefusal(asked: Promise<unknown>): Promise<void> {
  const refused = await asked.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (refused instanceof ApiError && refused.status === 402) return;
  throw refused ?? new Error("The seller gave the data away.");
}

function settledIn({ receipt, target }: Exchange): string {
  if (receipt?.success !== true) throw new Error(`${target} was not settled.`);
  return receipt.transaction;
}

function titleOf({ method, target }: Exchange): string {
  const [path = ""] = target.split("?");
  const short = path.replace(/0x[0-9a-f]{40}/i, (address) => `${address.slice(0, 8)}…`);
  return `${method} ${short}`;
}
