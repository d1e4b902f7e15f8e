import { createPayingFetch } from "@coinslot/client";
import type { Devnet } from "@coinslot/devnet";
import { wrapAxiosWithPayment } from "@x402/axios";
import axios from "axios";
import { withPaymentInterceptor } from "x402-axios";
import { wrapFetchWithPayment as wrapFetchWithPaymentV1 } from "x402-fetch";
import { createLegacyWallet } from "../../support/legacy.ts";
import { createReferenceClient, createReferenceFetch } from "../../support/reference.ts";

/** A client that pays, and the versions of the protocol that it speaks. */
export interface MatrixClient {
  name: string;
  versions: readonly (1 | 2)[];
  /** Buys once with the devnet's buyer. A throw of the client means that it did not buy. */
  buy(devnet: Devnet, url: string): Promise<{ status: number; body: unknown }>;
}

/** Every client of the matrix. */
export const clients: readonly MatrixClient[] = [
  {
    name: "@coinslot/client",
    versions: [1, 2],
    buy(devnet, url) {
      const { network, rpcUrl, token, accounts } = devnet;
      const limits = { perPayment: 10_000n, perHost: 1_000_000n, perDay: 1_000_000n };
      const asset = { network, address: token, name: "USDT0", version: "1", decimals: 6, limits };
      const pay = createPayingFetch({
        account: accounts.buyer,
        rpcUrls: { [network]: rpcUrl },
        budget: { assets: [asset] },
      });
      return buyByFetch(pay, url);
    },
  },
  {
    name: "@x402/fetch 2.27",
    versions: [2],
    buy: (devnet, url) => buyByFetch(createReferenceFetch(devnet, devnet.accounts.buyer), url),
  },
  {
    name: "@x402/axios 2.11",
    versions: [2],
    buy(devnet, url) {
      const client = createReferenceClient(devnet, devnet.accounts.buyer);
      // Of another release than the client, which it takes by its form.
      type Client = Parameters<typeof wrapAxiosWithPayment>[1];
      const pay = wrapAxiosWithPayment(axios.create(), client as unknown as Client);
      return buyByAxios(pay, url);
    },
  },
  {
    name: "x402-fetch 1.2",
    versions: [1],
    buy(devnet, url) {
      const wallet = createLegacyWallet(devnet, devnet.accounts.buyer);
      return buyByFetch(wrapFetchWithPaymentV1(fetch, wallet), url);
    },
  },
  {
    name: "x402-axios 0.7",
    versions: [1],
    buy(devnet, url) {
      const wallet = createLegacyWallet(devnet, devnet.accounts.buyer);
      return buyByAxios(withPaymentInterceptor(axios.create(), wallet), url);
    },
  },
];

async function buyByFetch(pay: typeof fetch, url: string) {
  const response = await pay(url);
  const text = await response.text();
  return { status: response.status, body: response.ok ? JSON.parse(text) : text };
}

async function buyByAxios(pay: ReturnType<typeof axios.create>, url: string) {
  const response = await pay.get(url);
  const body: unknown = response.data;
  return { status: response.status, body };
}
