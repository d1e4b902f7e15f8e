import { createPayingFetch, type PayingAccount, type Protocol } from "@coinslot/client";
import { type Devnet, devSeedPhrase } from "@coinslot/devnet";
import { WalletAccountEvm } from "@tetherto/wdk-wallet-evm";
import { wrapAxiosWithPayment } from "@x402/axios";
import { x402Client } from "@x402/core/client";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment } from "@x402/fetch";
import axios from "axios";
import * as mppx11 from "mppx/client";
import * as mppx8 from "mppx-0.8/client";
import * as mppx9 from "mppx-0.9/client";
import * as mppx10 from "mppx-0.10/client";
import type { LocalAccount } from "viem";
import { withPaymentInterceptor } from "x402-axios";
import { wrapFetchWithPayment as wrapFetchWithPaymentV1 } from "x402-fetch";
import { createLegacyWallet } from "../../support/legacy.ts";
import { runMppx } from "../../support/run-mppx.ts";
import { usdc, usdcDomain } from "../../support/usdc-devnet.ts";

/** A released client, and the wire by which it pays an answer with all three offers. */
export interface Buyer {
  /** As the documentation names it. */
  name: string;
  wire: "x402, version 1" | "x402, version 2" | "MPP";
  /** Buys once with the devnet's buyer, and resolves with the body. */
  buy(devnet: Devnet, url: string): Promise<unknown>;
}

/** Every buyer. Of each line of `mppx`, the newest release that the registry has. */
export const buyers: readonly Buyer[] = [
  {
    name: "x402-fetch 1.2.0",
    wire: "x402, version 1",
    buy(devnet, url) {
      const wallet = createLegacyWallet(devnet, devnet.accounts.buyer);
      return readBody(wrapFetchWithPaymentV1(fetch, wallet)(url));
    },
  },
  {
    name: "x402-axios 0.7.2",
    wire: "x402, version 1",
    async buy(devnet, url) {
      const wallet = createLegacyWallet(devnet, devnet.accounts.buyer);
      return (await withPaymentInterceptor(axios.create(), wallet).get(url)).data;
    },
  },
  {
    name: "@x402/fetch 2.27.0",
    wire: "x402, version 2",
    buy: (devnet, url) => buyByReference(devnet, devnet.accounts.buyer, url),
  },
  {
    name: "@x402/axios 2.11.0",
    wire: "x402, version 2",
    async buy(devnet, url) {
      // Of another release than the client, which it takes by its form.
      type Client = Parameters<typeof wrapAxiosWithPayment>[1];
      const client = referenceClient(devnet, devnet.accounts.buyer) as unknown as Client;
      return (await wrapAxiosWithPayment(axios.create(), client).get(url)).data;
    },
  },
  buyerOfMppx("mppx 0.8.19", mppx8),
  buyerOfMppx("mppx 0.9.3", mppx9),
  buyerOfMppx("mppx 0.10.1", mppx10),
  buyerOfMppx("mppx 0.11.0", mppx11),
  buyerOfCommand("mppx 0.11.0, command line", "MPP", []),
  buyerOfCommand("mppx 0.11.0, command line, --protocol x402", "x402, version 2", [
    "--protocol",
    "x402",
  ]),
  {
    name: "@x402/fetch 2.27.0 with an account of WDK",
    wire: "x402, version 2",
    buy: (devnet, url) => buyByReference(devnet, wdkAccount(), url),
  },
  buyerOfOurs("@coinslot/client", "x402, version 2"),
  buyerOfOurs('@coinslot/client, protocols: ["mpp"]', "MPP", { protocols: ["mpp"] }),
  buyerOfOurs("@coinslot/client with an account of WDK", "MPP", {
    protocols: ["mpp"],
    account: wdkAccount,
  }),
];

type Signer = PayingAccount & ConstructorParameters<typeof ExactEvmScheme>[0];

/**
 * The devnet's buyer as the Wallet Development Kit has it, whose types know no hexadecimal text.
 */
function wdkAccount(): Signer {
  return new WalletAccountEvm(devSeedPhrase, "0'/0/3") as unknown as Signer;
}

function referenceClient(devnet: Devnet, signer: Signer): x402Client {
  const client = new x402Client().setSpendControls(false);
  return client.register(devnet.network, new ExactEvmScheme(signer));
}

function buyByReference(devnet: Devnet, signer: Signer, url: string): Promise<unknown> {
  return readBody(wrapFetchWithPayment(fetch, referenceClient(devnet, signer))(url));
}

/** The part of `mppx/client` that this test uses. */
interface MppxClient {
  evm: { charge(options: { account: LocalAccount; authorization: typeof usdcDomain }): unknown };
  Mppx: { create(options: { polyfill: false; methods: never }): { fetch: typeof fetch } };
}

function buyerOfMppx(name: string, { evm, Mppx }: MppxClient): Buyer {
  return {
    name,
    wire: "MPP",
    buy({ accounts }, url) {
      const method = evm.charge({ account: accounts.buyer, authorization: usdcDomain });
      const methods = [method] as never;
      return readBody(Mppx.create({ polyfill: false, methods }).fetch(url));
    },
  };
}

function buyerOfCommand(name: string, wire: Buyer["wire"], options: readonly string[]): Buyer {
  return {
    name,
    wire,
    async buy(devnet, url) {
      const { code, stdout, stderr } = await runMppx(devnet, [url, "--silent", ...options]);
      if (code !== 0) throw new Error(`mppx ended with ${code}: ${stdout}${stderr}`);
      return JSON.parse(stdout);
    },
  };
}

interface OurOptions {
  protocols?: readonly Protocol[];
  account?: () => PayingAccount;
}

function buyerOfOurs(name: string, wire: Buyer["wire"], options: OurOptions = {}): Buyer {
  const { account, ...protocols } = options;
  return {
    name,
    wire,
    buy({ network, rpcUrl, accounts }, url) {
      const limits = { perPayment: 10_000n, perHost: 1_000_000n, perDay: 1_000_000n };
      const asset = { network, address: usdc, ...usdcDomain, decimals: 6, limits };
      const pay = createPayingFetch({
        ...protocols,
        account: account?.() ?? accounts.buyer,
        rpcUrls: { [network]: rpcUrl },
        budget: { assets: [asset] },
      });
      return readBody(pay(url));
    },
  };
}

async function readBody(answer: Promise<Response>): Promise<unknown> {
  const response = await answer;
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status}: ${text}`);
  return JSON.parse(text);
}
