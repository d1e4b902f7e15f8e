import { type Devnet, startDevnet } from "@coinslot/devnet";
import { plasma } from "@coinslot/protocol";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import {
  createPayingFetch,
  type PayingAccount,
  type PayingFetch,
  type PayingFetchOptions,
  PaymentError,
  type PaymentEvent,
} from "../index.ts";
import { type CountingAccount, countSignatures } from "./counting-account.ts";
import type { Listening } from "./listen.ts";
import type { Seller } from "./seller.ts";

/** A chain, a rich buyer, and servers that end with the test. */
export interface World {
  devnet(): Devnet;
  /** The buyer, counting from zero in each test. */
  account(): CountingAccount;
  /** The events of this test's fetches, without their terms. */
  states(): string[];
  /** Waits of this test's fetches between attempts, in milliseconds. */
  waits: number[];
  /** Closes the server after the test. */
  keep<T extends Listening>(listening: T): T;
  createFetch(change?: Change): PayingFetch;
  /**
   * The error with which a call ends, after making sure that nothing was signed and nothing sent.
   */
  refusalOf(call: Promise<Response>, seller?: Seller): Promise<PaymentError>;
}

type Change = Partial<
  Omit<PayingFetchOptions, "account" | "seedPhrase" | "accountIndex" | "privateKey">
> & { account?: PayingAccount };

/** Registers the hooks for a test file that needs a chain. */
export function useWorld(): World {
  let devnet: Devnet | undefined;
  let account: CountingAccount | undefined;
  const servers: Listening[] = [];
  const events: PaymentEvent[] = [];
  const waits: number[] = [];

  beforeAll(async () => {
    devnet = await startDevnet({ chainId: 9745 });
    await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000_000n });
  });
  afterAll(() => devnet?.stop());
  beforeEach(() => {
    account = countSignatures(world.devnet().accounts.buyer);
    events.length = 0;
    waits.length = 0;
  });
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.close()));
  });

  const world: World = {
    devnet: () => devnet ?? unready(),
    account: () => account ?? unready(),
    states: () => events.map(({ state }) => state),
    waits,
    keep: (listening) => {
      servers.push(listening);
      return listening;
    },
    createFetch: (change) =>
      createPayingFetch({
        account: world.account(),
        rpcUrls: { [plasma]: world.devnet().rpcUrl },
        onPayment: (event) => events.push(event),
        wait: async (ms, signal) => {
          signal?.throwIfAborted();
          waits.push(ms);
        },
        ...change,
      }),
    refusalOf: async (call, seller) => {
      const error = await call.then(
        ({ status }) => new Error(`It was answered ${status}`),
        (thrown: unknown) => thrown,
      );
      if (!(error instanceof PaymentError)) throw error;
      expect(error.moneyMayHaveMoved).toBe(false);
      expect(world.account().signatures()).toBe(0);
      expect(seller?.paid ?? []).toHaveLength(0);
      return error;
    },
  };
  return world;
}

function unready(): never {
  throw new Error("The world is there only while tests run");
}
