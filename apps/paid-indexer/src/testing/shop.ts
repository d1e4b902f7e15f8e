import { createPayingFetch, OutcomeUnclearError } from "@coinslot/client";
import type { Devnet } from "@coinslot/devnet";
import { createLogger } from "@coinslot/hosting";
import { devnetChain } from "@coinslot/indexer";
import {
  decodePaymentRequired,
  eip3009Abi,
  headerName,
  plasma,
  plasmaUsdt0,
} from "@coinslot/protocol";
import type supertest from "supertest";
import type { PaidIndexerConfiguration } from "../read-configuration.ts";
import { startPaidIndexer } from "../start-paid-indexer.ts";

/** The price of everything, in the smallest unit of the token. */
export const price = 1_000n;

/** A seller on a devnet, a buyer, and the seller's income. */
export interface Shop {
  url: string;
  /** Sends a request, pays its price, and returns the final answer, good or bad. */
  pay: typeof fetch;
  /** The seller's balance. */
  takings(): Promise<bigint>;
  /** Everything that was logged. */
  log(): string;
  stop(): Promise<void>;
}

/** Opens a shop for a remote API, or by default for one in this process that indexes the devnet. */
export async function openShop(
  devnet: Devnet,
  upstream: PaidIndexerConfiguration["upstream"] = {
    embedded: {
      chains: [devnetChain({ rpcUrls: [devnet.rpcUrl] })],
      database: "sqlite::memory:",
    },
  },
  { publicUrl }: { publicUrl?: string } = {},
): Promise<Shop> {
  const { accounts, rpcUrl } = devnet;
  let log = "";
  const logger = createLogger("debug", {
    write(line) {
      log += line;
    },
  });
  const seller = await startPaidIndexer(
    {
      host: "127.0.0.1",
      port: 0,
      trustProxy: 0,
      publicUrl,
      logLevel: "debug",
      terms: { network: plasma, asset: plasmaUsdt0, price, payTo: accounts.seller.address },
      facilitator: {
        networks: [{ network: plasma, rpcUrls: [rpcUrl], relayer: accounts.relayer }],
        ledger: "sqlite::memory:",
      },
      upstream,
    },
    { logger },
  );
  let last: Response | undefined;
  const payingFetch = createPayingFetch({
    account: accounts.buyer,
    rpcUrls: { [plasma]: rpcUrl },
    maxAttempts: 1,
    async fetch(input, init) {
      const answer = await fetch(input, init);
      const { status, headers } = answer;
      const body = await answer.clone().arrayBuffer();
      last = new Response(body.byteLength === 0 ? null : body, { status, headers });
      return answer;
    },
  });

  async function pay(...request: Parameters<typeof fetch>): Promise<Response> {
    try {
      return await payingFetch(...request);
    } catch (error) {
      // A client has to think the worst of a 502; here it is looked at.
      if (error instanceof OutcomeUnclearError && last !== undefined) return last;
      throw error;
    }
  }

  return {
    ...seller,
    pay,
    takings: () =>
      devnet.client.readContract({
        address: devnet.token,
        abi: eip3009Abi,
        functionName: "balanceOf",
        args: [accounts.seller.address],
      }),
    log: () => log,
  };
}

/** The price in an unpaid answer, in the smallest unit; `undefined` for a free one. */
export function priceAsked({ status, headers }: supertest.Response): bigint | undefined {
  const offer = headers[headerName.paymentRequired.toLowerCase()];
  if (status !== 402 || offer === undefined) return undefined;
  const [way] = decodePaymentRequired(offer).accepts;
  return way && BigInt(way.requirements.amount);
}
