import { startDevnet } from "@coinslot/devnet";
import { plasma, stable, stableUsdt0 } from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import { createPayingFetch } from "./index.ts";
import { listen } from "./testing/listen.ts";
import { requirements, startSeller } from "./testing/seller.ts";
import { useWorld } from "./testing/world.ts";

const world = useWorld();
const { keep, createFetch } = world;

describe("the payer of a paying fetch", () => {
  it("may be a seed phrase or a private key, and uses a new nonce each time", async () => {
    const { rpcUrl, accounts } = world.devnet();
    const rpcUrls = { [plasma]: rpcUrl };
    const seller = keep(await startSeller());
    const seedPhrase = "test test test test test test test test test test test junk";
    await createPayingFetch({ seedPhrase, accountIndex: 3, rpcUrls })(seller.url);
    await createPayingFetch({ privateKey: accounts.buyer.privateKey, rpcUrls })(seller.url);
    const payers = seller.paid.map(({ authorization }) => authorization.from);
    expect(payers).toEqual(Array(2).fill(accounts.buyer.address.toLowerCase()));
    expect(new Set(seller.paid.map(({ authorization }) => authorization.nonce)).size).toBe(2);
  });

  it("pays on a network with funds, and asks the next endpoint if one is down", async () => {
    const stableNet = await startDevnet({ chainId: 988 });
    const broken = keep(await listen((_, response) => void response.writeHead(500).end()));
    try {
      // Cheaper on Stable, but the funds are on Plasma.
      const accepts = () => [
        requirements({ network: stable, asset: stableUsdt0.address, amount: "900" }),
        requirements(),
      ];
      const seller = keep(await startSeller({ accepts }));
      const rpcUrls = {
        [stable]: stableNet.rpcUrl,
        [plasma]: [broken.url, world.devnet().rpcUrl],
      };
      await createFetch({ rpcUrls })(seller.url);
      await stableNet.mint({ to: world.account().address, amount: 5000n });
      await createFetch({ rpcUrls })(seller.url);
      const networks = seller.paid.map(({ payload }) =>
        payload.x402Version === 2 ? payload.accepted.network : payload.network,
      );
      expect(networks).toEqual([plasma, stable]);
    } finally {
      await stableNet.stop();
    }
  });

  it("pays on a funded network while another one hangs", async () => {
    const hanging = keep(await listen(() => {}));
    const accepts = () => [
      requirements({ network: stable, asset: stableUsdt0.address, amount: "1" }),
      requirements(),
    ];
    const seller = keep(await startSeller({ accepts }));
    const rpcUrls = { [stable]: hanging.url, [plasma]: world.devnet().rpcUrl };
    const response = await createFetch({ rpcUrls, balanceTimeoutMs: 2_000 })(seller.url);
    expect(response.status).toBe(200);
  });
});
