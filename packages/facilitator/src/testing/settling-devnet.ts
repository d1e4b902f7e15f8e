import { createTestDatabase, type Devnet, startDevnet, testUsdt0 } from "@coinslot/devnet";
import { byDay } from "@coinslot/devnet/effort";
import type { Address } from "@coinslot/protocol";
import pino from "pino";
import { onTestFailed } from "vitest";
import type {
  FacilitatorNetworkOptions,
  FacilitatorOptions,
} from "../configuration/facilitator-options.ts";
import type { SettlementOptions } from "../configuration/settlement-options.ts";
import { type CoinslotFacilitator, createFacilitator } from "../create-facilitator.ts";
import { copyMigratedLedger, createLedgerFile } from "./migrated-ledger.ts";
import { signPayment, type TestPayment } from "./payments.ts";

/** The engines under which everything must hold. */
export const engines = ["sqlite", "postgres"] as const;
export type Engine = (typeof engines)[number];

/**
 * For tests whose subject is a chain, a node or a signer, and no statement of the ledger: one
 * engine stands for both by day. It is PostgreSQL where several processes share a ledger.
 */
export function enginesByDay(engine: Engine): readonly Engine[] {
  return byDay([engine], engines);
}

/** Location of a ledger during a test. */
export interface TestLedger {
  url: string;
  drop(): Promise<void>;
}

/** The place of a ledger that its first process makes: a SQLite file, or a PostgreSQL database. */
export function createTestLedger(engine: Engine): Promise<TestLedger> {
  return engine === "postgres" ? createTestDatabase() : createLedgerFile();
}

type Options = Partial<FacilitatorOptions & SettlementOptions> & {
  network?: Partial<FacilitatorNetworkOptions>;
};

/** A devnet with facilitators on one ledger, which end together. */
export interface SettlingDevnet {
  devnet: Devnet;
  ledger: TestLedger;
  /** Starts a facilitator on the ledger, and waits until it is ready. */
  start(options?: Options): Promise<CoinslotFacilitator>;
  /** A payment of the buyer to the seller, by default of 1,000 units. */
  pay(payment?: Partial<TestPayment>): ReturnType<typeof signPayment>;
  balanceOf(account: Address): Promise<bigint>;
  stop(): Promise<void>;
}

/**
 * Starts a devnet whose buyer holds tokens. A test that fails shows what its facilitators wrote.
 *
 * @param options `isUnmade`: the first facilitator makes the ledger's tables. Otherwise they are
 * there already, without rows
 */
export async function startSettlingDevnet(
  engine: Engine,
  options: { chainId?: number; blockTimeSeconds?: number; isUnmade?: boolean } = {},
): Promise<SettlingDevnet> {
  const { isUnmade = false, ...chain } = options;
  const place = isUnmade ? createTestLedger(engine) : copyMigratedLedger(engine);
  const [devnet, ledger] = await Promise.all([startDevnet(chain), place]);
  const { buyer, relayer, seller } = devnet.accounts;
  await devnet.mint({ to: buyer.address, amount: 1_000_000_000n });
  const running: CoinslotFacilitator[] = [];
  const logged: string[] = [];
  const logger = pino({ level: "debug" }, { write: (line) => void logged.push(line) });
  onTestFailed(() => {
    process.stderr.write(logged.join(""));
  });
  return {
    devnet,
    ledger,
    async start({ network, times, ...others } = {}) {
      const facilitator = createFacilitator({
        networks: [
          {
            network: devnet.network,
            rpcUrls: [devnet.rpcUrl],
            relayer: { privateKey: relayer.privateKey },
            ...network,
          },
        ],
        ledger: ledger.url,
        logger,
        // Less than a test's own timeout, so that a hang is reported with its state.
        settleTimeoutSeconds: 60,
        // A test's blocks come when it mines them, and nothing is to be waited for.
        times: { settlingMs: 500, refundMs: 50, ...times },
        ...others,
      });
      running.push(facilitator);
      await facilitator.ready();
      return facilitator;
    },
    pay: (payment = {}) =>
      signPayment({
        network: devnet.network,
        asset: devnet.token,
        signer: buyer,
        payTo: seller.address,
        ...payment,
      }),
    balanceOf: (account) =>
      devnet.client.readContract({
        address: devnet.token,
        abi: testUsdt0.abi,
        functionName: "balanceOf",
        args: [account],
      }),
    async stop() {
      await Promise.all(running.map((facilitator) => facilitator.close()));
      await Promise.all([devnet.stop(), ledger.drop()]);
    },
  };
}
