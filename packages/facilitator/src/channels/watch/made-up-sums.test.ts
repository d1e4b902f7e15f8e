import { byDay } from "@coinslot/devnet/effort";
import { expect, it, onTestFinished, vi } from "vitest";
import { patience, price, startClaimingDevnet } from "../../testing/claiming-devnet.ts";
import { type ChannelLie, lieAboutChannels } from "../../testing/lying-escrow.ts";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import { type Fault, fail } from "../../testing/silent-node.ts";

it.each<[string, Fault | undefined, string]>(
  byDay(
    [["answers by an error", "refuses", "busy"]],
    [
      ["answers", undefined, "corrected"],
      ["answers by an error", "refuses", "busy"],
    ],
  ),
)(
  "a channel sells though one node has shown more as claimed, and the other %s",
  async (_, other, first) => {
    const here = await startClaimingDevnet("sqlite");
    onTestFinished(() => here.stop());
    const { devnet, channels } = here;
    let lie: ChannelLie;
    let fault: Fault | undefined;
    const nodes = [
      await startNodeProxy(devnet.rpcUrl, (call, ask) => lieAboutChannels(call, ask, lie)),
      await startNodeProxy(devnet.rpcUrl, (call, ask) => fail(fault, call, ask)),
    ];
    onTestFinished(() => Promise.all(nodes.map((node) => node.close())).then(() => {}));
    const rpcUrls = nodes.map(({ url }) => url);
    const facilitator = await here.start({}, { network: { rpcUrls } });
    const known = channels.configOf();
    await channels.deposit(known, 20_000n);
    // From here on the chain is followed.
    await here.buyOnce(facilitator, price, known);
    const config = channels.configOf();
    await channels.deposit(config, 20_000n);
    lie = { totalClaimed: 5_000n };
    fault = other;
    expect(await here.ask(facilitator, price, config)).toMatchObject({ state: first });
    [lie, fault] = [undefined, undefined];
    await channels.deposit(config, 1_000n, { salt: `0x${"1".repeat(64)}` });
    await vi.waitFor(async () => {
      await devnet.mine(1);
      expect(await here.ask(facilitator, price, config)).toMatchObject({ state: "admitted" });
    }, patience);
  },
);
