import { type Devnet, devSeedPhrase } from "@coinslot/devnet";
import { bundleProgram } from "@coinslot/devnet/bundle-program";
import { type SellerProcess, startSellerProcess } from "./seller.ts";
import { requirementsOf } from "./signed-payments.ts";

/**
 * Sellers on one ledger, each a process of its own, with as many relayers as are to live at once.
 */
export interface SellerFleet {
  /** Those that live, the oldest first. */
  readonly living: SellerProcess[];
  start(): Promise<void>;
  /** Ends the oldest in order. A load balancer takes a seller out before it stops. */
  retireOldest(): Promise<void>;
  /** Ends all that were ever started. */
  stop(): Promise<void>;
}

/**
 * Starts the sellers of a fleet one after the other.
 *
 * @param options.folder for their program
 */
export async function startSellerFleet(options: {
  devnet: Devnet;
  folder: string;
  ledger: string;
  count: number;
}): Promise<SellerFleet> {
  const { devnet, folder, ledger, count } = options;
  const source = new URL("./seller-process.ts", import.meta.url);
  const program = await bundleProgram(source, folder, { minifies: true });
  const started: SellerProcess[] = [];
  const living: SellerProcess[] = [];
  const fleet: SellerFleet = {
    living,
    async start() {
      const seller = await startSellerProcess(program, {
        kind: "ours",
        rpcUrl: devnet.rpcUrl,
        chainId: devnet.chainId,
        relayer: { seedPhrase: devSeedPhrase, accountIndex: 1, addressCount: count },
        ledger,
        requirements: requirementsOf(devnet),
      });
      started.push(seller);
      living.push(seller);
    },
    async retireOldest() {
      await living.shift()?.retire();
    },
    async stop() {
      await Promise.all(started.map((seller) => seller.stop()));
    },
  };
  try {
    for (let index = 0; index < count; index += 1) await fleet.start();
  } catch (error) {
    await fleet.stop();
    throw error;
  }
  return fleet;
}
