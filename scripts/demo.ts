// One paid request, end to end, on a chain of its own: what it costs, what is signed, what moves.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createPayingFetch, receiptOf } from "@coinslot/client";
import { type Devnet, startDevnet } from "@coinslot/devnet";
import { paymentMiddleware } from "@coinslot/express";
import { createFacilitator } from "@coinslot/facilitator";
import {
  type Address,
  decodePaymentRequired,
  decodePaymentV2,
  eip3009Abi,
  formatMoney,
  headerName,
} from "@coinslot/protocol";
import express from "express";
import { facts, paint, step, table } from "./demo/print.ts";

const decimals = 6;
const tokens = (amount: bigint) => `${formatMoney(amount, decimals)} USDT0`;

const devnet = await startDevnet({ chainId: 9745 });
try {
  await demo(devnet);
} finally {
  await devnet.stop();
}

async function demo(devnet: Devnet): Promise<void> {
  const { buyer, seller, relayer } = devnet.accounts;
  await devnet.mint({ to: buyer.address, amount: 1_000_000n });

  step(1, "A chain with a stablecoin, a seller and a buyer");
  const facilitator = createFacilitator({
    networks: [{ network: devnet.network, rpcUrls: [devnet.rpcUrl], relayer }],
    ledger: "sqlite::memory:",
  });
  const app = express();
  app.use(
    paymentMiddleware(
      {
        "GET /weather": {
          accepts: [
            {
              scheme: "exact",
              network: devnet.network,
              payTo: seller.address,
              price: "$0.001",
            },
          ],
          description: "Weather data",
          mimeType: "application/json",
        },
      },
      facilitator,
    ),
  );
  app.get("/weather", (_request, response) => {
    response.json({ forecast: "sun", degrees: 21 });
  });
  app.get("/about", (_request, response) => {
    response.json({ sells: "weather" });
  });
  await facilitator.ready();
  const server = createServer(app).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    facts({
      network: `${devnet.network} (a local Plasma)`,
      token: `${devnet.token} USDT0`,
      seller: `${url}, paid at ${seller.address}`,
      buyer: `${buyer.address}, holds ${tokens(await balanceOf(buyer.address))}`,
      relayer: `${relayer.address}, pays the gas`,
    });

    step(2, "A route that is not listed is free");
    const free = await fetch(`${url}/about`);
    facts({ "GET /about": `${free.status} ${await free.text()}` });

    step(3, "A listed one answers 402, and says what it costs");
    const unpaid = await fetch(`${url}/weather`);
    const offer = decodePaymentRequired(unpaid.headers.get(headerName.paymentRequired) ?? "");
    const price = offer.accepts[0]?.requirements;
    if (price === undefined) throw new Error("The seller offers no way to pay.");
    facts({
      "GET /weather": `${unpaid.status} ${unpaid.statusText}`,
      price: tokens(BigInt(price.amount)),
      scheme: `${price.scheme} on ${price.network}`,
      "pay to": price.payTo,
    });

    step(4, "The buyer signs a transfer and asks again");
    const before = await balances();
    const pay = createPayingFetch({
      account: buyer,
      rpcUrls: { [devnet.network]: devnet.rpcUrl },
      budget: { perPayment: "$0.01" },
      fetch: async (input, init) => {
        const signed = new Request(input, init).headers.get(headerName.paymentSignature);
        if (signed !== null) {
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
      },
    });
    const started = performance.now();
    const paid = await pay(`${url}/weather`);
    const milliseconds = performance.now() - started;

    step(5, "The seller verifies, works, settles on chain, and answers");
    const receipt = receiptOf(paid);
    if (receipt === undefined || !receipt.success) throw new Error("The payment was not settled.");
    facts({
      "GET /weather": `${paid.status} ${await paid.text()}`,
      receipt: `success, paid by ${receipt.payer}`,
      transaction: receipt.transaction,
      took: `${milliseconds.toFixed(0)} ms`,
    });

    step(6, "The tokens have moved");
    const after = await balances();
    table([
      ["", "before", "after", "difference"],
      ...after.map(({ who, amount }, index) => {
        const was = before[index]?.amount ?? 0n;
        const difference = `${amount > was ? "+" : ""}${formatMoney(amount - was, decimals)}`;
        return [who, formatMoney(was, decimals), tokens(amount), paint("green", difference)];
      }),
    ]);
    console.log(
      `\n${paint("bold", "Sold.")} Next: the README's seller and buyer, on npm run devnet.`,
    );
  } finally {
    server.close();
    server.closeAllConnections();
    await facilitator.close();
  }

  async function balances() {
    return Promise.all(
      Object.entries({ buyer, seller }).map(async ([who, { address }]) => ({
        who,
        amount: await balanceOf(address),
      })),
    );
  }

  function balanceOf(account: Address): Promise<bigint> {
    return devnet.client.readContract({
      address: devnet.token,
      abi: eip3009Abi,
      functionName: "balanceOf",
      args: [account],
    });
  }
}
