import { type Devnet, listen, startDevnet } from "@coinslot/devnet";
import { paymentMiddleware } from "@coinslot/express";
import { createFacilitator } from "@coinslot/facilitator";
import {
  addWallet,
  openBrowser,
  type TestWallet,
  type WalletOptions,
} from "@coinslot/pages/testing";
import { eip3009Abi } from "@coinslot/protocol";
import express, { type Express } from "express";
import type { Browser, Page } from "playwright-core";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { type PaywallOptions, paywall } from "../index.ts";

/** Price of everything in these tests: 0.001 USDT0. */
const price = 1_000n;

/** Scripts in a route's description. */
const hostileText = `<img src=x onerror="alert(1)"></script><script>alert(2)</script>`;

/** A seller on a chain, and a browser. */
export interface World {
  devnet: Devnet;
  url: string;
  /** Runs of handlers by path. */
  runs: Map<string, number>;
  /** Changes how handlers answer; `undefined`: as usual. */
  interfere(handler: express.RequestHandler | undefined): void;
  /** Opens a page of a new browser session with a funded wallet. */
  visit(options?: VisitOptions): Promise<Visit>;
  close(): Promise<void>;
}

export interface VisitOptions extends Pick<WalletOptions, "intercept"> {
  /** Smallest units that the wallet holds. Default: ten times the price. */
  funds?: bigint;
  hasWallet?: boolean;
  /** Chains of the wallet in its order: the first is the selected one. */
  chainIds?: readonly number[];
  locale?: string;
  javaScriptEnabled?: boolean;
}

export interface Visit {
  page: Page;
  wallet: TestWallet | undefined;
  /** Number of payments that moved money out of the wallet. */
  payments(): Promise<number>;
  close(): Promise<void>;
}

/** The application around the seller's own. */
export interface HostApplication {
  /** Middleware of the application. */
  before?: (app: Express) => void;
  /** Path at which the seller's own application is mounted. */
  mount?: string;
}

/** Starts a chain, a seller that settles on it, and a browser. */
export async function openWorld(
  options: PaywallOptions = {},
  { before, mount = "" }: HostApplication = {},
): Promise<World> {
  const [devnet, browser] = await Promise.all([startDevnet(), openBrowser()]);
  const { network, rpcUrl, accounts } = devnet;
  const facilitator = createFacilitator({
    networks: [{ network, rpcUrls: [rpcUrl], relayer: accounts.relayer }],
    ledger: "sqlite::memory:",
  });
  const accepts = {
    scheme: "exact",
    network,
    price: "$0.001",
    payTo: accounts.seller.address,
  } as const;
  const gate = paymentMiddleware(
    {
      "GET /json": { accepts, description: "Weather of Bern" },
      "GET /page": { accepts },
      "POST /form": { accepts },
      "GET /file": { accepts },
      "GET /hostile": { accepts, description: hostileText },
      "GET /large": { accepts },
      "GET /upfront": { accepts, paymentFlow: "upfront" },
    },
    facilitator,
    { paywall: paywall(options) },
  );
  const runs = new Map<string, number>();
  let interference: express.RequestHandler | undefined;
  const app = express();
  app.get("/start", (_request, response) => void response.type("html").send(startPage));
  app.use(gate);
  app.use((request, response, next) => {
    runs.set(request.path, (runs.get(request.path) ?? 0) + 1);
    if (interference === undefined) next();
    else return interference(request, response, next);
  });
  serve(app);
  await gate.ready();
  const outer = mount === "" && before === undefined ? app : express();
  before?.(outer);
  if (outer !== app) outer.use(mount, app);
  const { url, close } = await listen(outer);
  return {
    devnet,
    url: `${url}${mount}`,
    runs,
    interfere(handler) {
      interference = handler;
    },
    visit: (asked) => visit({ browser, devnet, ...asked }),
    async close() {
      await Promise.all([browser.close(), close()]);
      await gate.close();
      await facilitator.close();
      await devnet.stop();
    },
  };
}

const startPage = `<!doctype html><form method="post" action="/form"><input name="city" value="Zürich & <b>"><input name="submit" value="1"><button>Order</button></form>`;

function serve(app: Express): void {
  app.get("/json", (_request, response) => void response.json({ forecast: "<b>sun</b>" }));
  app.get("/page", (request, response) => {
    response.type("html").send(`<h1>Sold page</h1><p>${request.payment?.payer}</p>`);
  });
  for (const [path, rows] of [
    ["/large", 10_000],
    ["/upfront", 1],
  ] as const) {
    app.get(path, (_request, response) => {
      const script = `<script>document.title = "ran"; document.body.append("ran")</script>`;
      const row = "<p>A row of thirty characters.</p>";
      response.type("html").send(`<h1>Sold as it is</h1>${script}${row.repeat(rows)}`);
    });
  }
  app.post("/form", express.urlencoded({ extended: false }), (request, response) => {
    response.type("html").send(`<h1>Order</h1><pre>${encodeURIComponent(request.body.city)}</pre>`);
  });
  app.get("/file", (_request, response) => {
    response.attachment("report.pdf").send(Buffer.from("%PDF-1.4 sold"));
  });
  app.get("/hostile", (_request, response) => void response.type("text").send(hostileText));
}

async function visit({
  browser,
  devnet,
  funds = 10n * price,
  hasWallet = true,
  chainIds = [devnet.chainId],
  intercept,
  locale = "en-GB",
  javaScriptEnabled = true,
}: VisitOptions & { browser: Browser; devnet: Devnet }): Promise<Visit> {
  const account = privateKeyToAccount(generatePrivateKey());
  if (funds > 0n) await devnet.mint({ to: account.address, amount: funds });
  const context = await browser.newContext({ locale, javaScriptEnabled });
  const wallet = hasWallet
    ? await addWallet(context, {
        account,
        // Numeric names of an object are in numeric order: the selected chain is asked for below.
        nodes: Object.fromEntries(chainIds.map((id) => [id, devnet.rpcUrl])),
        ...(intercept === undefined ? {} : { intercept }),
      })
    : undefined;
  const [selected] = chainIds;
  if (wallet !== undefined && selected !== undefined) await wallet.selectChain(selected);
  const page = await context.newPage();
  return {
    page,
    wallet,
    async payments() {
      const balance = await devnet.client.readContract({
        address: devnet.token,
        abi: eip3009Abi,
        functionName: "balanceOf",
        args: [account.address],
      });
      return Number((funds - balance) / price);
    },
    close: () => context.close(),
  };
}
