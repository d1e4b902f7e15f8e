import { expect, it, onTestFinished, vi } from "vitest";
import { patience, price, startClaimingDevnet } from "../../testing/claiming-devnet.ts";
import { type ChannelLie, lieAboutChannels } from "../../testing/lying-escrow.ts";
import { startNodeProxy } from "../../testing/node-proxy.ts";

it("a channel sells though one node of two has shown more as claimed at its first voucher", async () => {
  const here = await startClaimingDevnet("sqlite");
  onTestFinished(() => here.stop());
  const { devnet, channels } = here;
  let lie: ChannelLie;
  const node = await startNodeProxy(devnet.rpcUrl, (call, ask) => lieAboutChannels(call, ask, lie));
  onTestFinished(node.close);
  const rpcUrls = [node.url, devnet.rpcUrl];
  const facilitator = await here.start({}, { network: { rpcUrls } });
  const config = channels.configOf();
  await channels.deposit(config, 20_000n);
  lie = { totalClaimed: 5_000n };
  expect(await here.admit(facilitator, price, config)).toMatchObject({ state: "corrected" });
  lie = undefined;
  await channels.deposit(config, 1_000n, { salt: `0x${"1".repeat(64)}` });
  await vi.waitFor(async () => {
    await devnet.mine(1);
    expect(await here.ask(facilitator, price, config)).toMatchObject({ state: "admitted" });
  }, patience);
});
