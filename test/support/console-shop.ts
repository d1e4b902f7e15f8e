import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPayingFetch } from "@coinslot/client";
import { type StartConsoleOptions, startConsole } from "@coinslot/console";
import { type Devnet, listen, placeChannels, startDevnet } from "@coinslot/devnet";
import { type PaymentMiddlewareOptions, paymentMiddleware } from "@coinslot/express";
import { type CoinslotFacilitator, createFacilitator } from "@coinslot/facilitator";
import express from "express";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { chargeChannel } from "./charge-channel.ts";
import { weatherPrice } from "./seller.ts";

/** A seller with its console, on a chain of its own. */
export interface ConsoleShop {
  devnet: Devnet;
  facilitator: CoinslotFacilitator;
  /** URL of its ledger, a file of SQLite. */
  ledger: string;
  /** URL of the shop. */
  url: string;
  consoleUrl: string;
  /** A fresh link that signs in to act. */
  signInUrl(): string;
  /** Lines that the console has printed. */
  printed: readonly string[];
  /** Buys a path of the shop, from the payer of this number. */
  buy(path: string, payer?: number, init?: RequestInit): Promise<Response>;
  /** Lets blocks pass until all is final that can be. */
  mine(): Promise<void>;
  /**
   * Charges requests on a new channel. With `isWithdrawn` its payer withdraws: the claim waits for
   * the next block.
   *
   * @returns its id
   */
  buyByChannel(requests: number, options?: { isWithdrawn?: boolean }): Promise<string>;
  close(): Promise<void>;
}

/** Key that signs in to the console. */
export const consoleKey = "console-key-".padEnd(40, "0");

const paths = ["/weather", "/reports/:name", "/translate"];

/** Options of the shop of tests and pictures. */
interface ConsoleShopOptions {
  /** Of its console. */
  console?: StartConsoleOptions;
  /** Of its middleware. */
  gate?: PaymentMiddlewareOptions;
  /** Every answer that is sold. */
  sold?: unknown;
}

/** Starts a chain, a seller of three routes with a float and a webhook, and its console. */
export async function openConsoleShop(options: ConsoleShopOptions = {}): Promise<ConsoleShop> {
  const devnet = await startDevnet({ chainId: 9745 });
  const folder = mkdtempSync(join(tmpdir(), "coinslot-"));
  const ledger = `sqlite:${join(folder, "ledger.db")}`;
  const float = generatePrivateKey();
  const payers = [devnet.accounts.buyer, privateKeyToAccount(generatePrivateKey())];
  await devnet.mint({ to: privateKeyToAccount(float).address, amount: 5_000_000n });
  for (const { address } of payers) await devnet.mint({ to: address, amount: 50_000_000n });
  await placeChannels(devnet);
  const receiver = await listen((_request, response) => response.end());
  const facilitator = createFacilitator({
    networks: [
      {
        network: devnet.network,
        rpcUrls: [devnet.rpcUrl],
        relayer: devnet.accounts.relayer,
        finalAfter: 2,
      },
    ],
    ledger,
    channels: { authorizer: { privateKey: devnet.accounts.deployer.privateKey } },
    refunds: { privateKey: float },
    webhooks: [
      {
        url: `${receiver.url}/coinslot`,
        secret: `whsec_${Buffer.alloc(32, 1).toString("base64")}`,
        unsafeAllowPrivateAddresses: true,
      },
    ],
  });
  await facilitator.ready();
  const shop = await startShop(devnet, facilitator, options);
  const printed: string[] = [];
  const console = await startConsole(facilitator, {
    port: 0,
    key: consoleKey,
    print: (line) => void printed.push(line),
    ...options.console,
  });
  const fetches = payers.map((account) =>
    createPayingFetch({ account, rpcUrls: { [devnet.network]: devnet.rpcUrl } }),
  );
  return {
    ...{ devnet, facilitator, ledger, url: shop.url, consoleUrl: console.url, printed },
    signInUrl: () => (printed.at(-1) ?? "").trim(),
    buy(path, payer = 0, init = {}) {
      const pay = fetches[payer];
      if (pay === undefined) throw new RangeError(`There is no payer ${payer}.`);
      return pay(`${shop.url}${path}`, init);
    },
    buyByChannel: (requests, { isWithdrawn = false } = {}) =>
      chargeChannel(devnet, facilitator, { requests, isWithdrawn }),
    mine: () => devnet.client.mine({ blocks: 3 }),
    async close() {
      await console.close();
      await shop.close();
      await facilitator.close();
      await Promise.all([devnet.stop(), receiver.close()]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function startShop(
  devnet: Devnet,
  facilitator: CoinslotFacilitator,
  { gate: gateOptions = {}, sold = { sold: true } }: ConsoleShopOptions,
) {
  const accepts = weatherPrice(devnet);
  const app = express();
  const gate = paymentMiddleware(
    {
      "GET /weather": { accepts, description: "Weather of Bern" },
      "GET /reports/:name": { accepts, description: "A report" },
      "POST /translate": { accepts, description: "A translation" },
    },
    facilitator,
    gateOptions,
  );
  app.use(gate);
  app.all(paths, (_request, response) => {
    response.json(sold);
  });
  await gate.ready();
  return listen(app);
}
