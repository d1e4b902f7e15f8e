import { createChannelFixture, placeChannels } from "@coinslot/devnet";
import type { Hex } from "@coinslot/protocol";
import { beforeAll, onTestFinished } from "vitest";
import type { ChannelRecord } from "../channels/channel-record.ts";
import { type ChannelStore, openChannelStore } from "../channels/channel-store.ts";
import type { PayingFetch, PayingFetchOptions } from "../index.ts";
import { type ChannelSeller, startChannelSeller } from "./channel-seller.ts";
import { useTemporaryFolder } from "./temporary-folder.ts";
import { useWorld, type World } from "./world.ts";

/** Registers the hooks for tests of channels: a chain with the contracts, a buyer, a folder. */
export function useChannels() {
  const world: World = useWorld();
  const inFolder = useTemporaryFolder();
  beforeAll(() => placeChannels(world.devnet()));

  async function openStore(name = "channels.db"): Promise<ChannelStore> {
    const store = await openChannelStore(inFolder(name));
    onTestFinished(() => store.close());
    return store;
  }

  return {
    world,
    inFolder,
    openStore,
    sellerOf: async (options?: Parameters<typeof startChannelSeller>[1]): Promise<ChannelSeller> =>
      world.keep(await startChannelSeller(world.devnet(), options)),
    /** A fetch with a new process's view: it opens the store anew. */
    createFetch: (
      channels: Partial<NonNullable<PayingFetchOptions["channels"]>> = {},
      change: Parameters<World["createFetch"]>[0] = {},
    ): PayingFetch =>
      world.createFetch({ channels: { file: inFolder("channels.db"), ...channels }, ...change }),
    records: async (): Promise<ChannelRecord[]> => (await openStore()).list(),
    /** The channel as the escrow has it. */
    async onChain(id: Hex | undefined) {
      const record = (await openStore()).find(id ?? "");
      if (record === undefined) throw new Error("There is no such channel");
      return createChannelFixture(world.devnet()).stateOf(record.config);
    },
  };
}
