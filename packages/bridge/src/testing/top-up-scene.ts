import { createTopUp, type FundsNeed, type TopUpOptions, type TopUpProposal } from "../index.ts";
import { type BridgeWorld, usdt, usdt0 } from "./bridge-world.ts";

export function needOf(change: Partial<FundsNeed> = {}): FundsNeed {
  return { network: "eip155:9745", asset: usdt0, amount: 1_000_000n, balance: 0n, ...change };
}

/** Makes top-ups of the world's buyer, which agree to every proposal and record it. */
export function createTopUps(world: () => BridgeWorld) {
  return function create(change: Partial<TopUpOptions> = {}) {
    const { buyer, createBridge } = world();
    const proposals: TopUpProposal[] = [];
    const topUp = createTopUp({
      bridge: createBridge(),
      token: usdt,
      ask(proposal) {
        proposals.push(proposal);
        return true;
      },
      pollIntervalMs: 10,
      // Messages are delivered as soon as they are sent.
      async onProgress({ state }) {
        if (state === "sent") await world().layerZero.deliver();
      },
      ...change,
    });
    const ask = (...needs: FundsNeed[]) => topUp({ payer: buyer, needs, signal: undefined });
    return { ask, proposals };
  };
}
