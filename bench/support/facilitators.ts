import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Devnet, startPostgres } from "@coinslot/devnet";
import { createReferenceFacilitator } from "@coinslot/devnet/reference-facilitator";
import { type CoinslotFacilitator, createFacilitator } from "@coinslot/facilitator";
import type { Facilitator } from "@coinslot/protocol";
import { createReferenceAccount } from "./reference-account.ts";

/** Both facilitators on the same chain, each with a relayer of its own. */
export interface Facilitators {
  ours: CoinslotFacilitator;
  reference: Facilitator;
  close(): Promise<void>;
}

/** Starts ours with a durable ledger, and the reference's. */
export async function startFacilitators(
  devnet: Devnet,
  ledger: "sqlite" | "postgres" = "sqlite",
): Promise<Facilitators> {
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  const postgres = ledger === "postgres" ? await startPostgres() : undefined;
  const ours = createFacilitator({
    networks: [
      {
        network: devnet.network,
        rpcUrls: [devnet.rpcUrl],
        relayer: { privateKey: devnet.accounts.relayer.privateKey },
      },
    ],
    ledger: (await postgres?.createDatabase())?.url ?? `sqlite:${join(folder, "ledger.db")}`,
  });
  const payer = createReferenceAccount(devnet.accounts.deployer.privateKey);
  const reference = createReferenceFacilitator(devnet, payer);
  await ours.ready();
  return {
    ours,
    reference,
    close: async () => {
      await ours.close();
      await postgres?.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
