import type { ChannelConfig } from "@coinslot/protocol";
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import type { CoinslotFacilitator } from "../../create-facilitator.ts";
import {
  type ClaimingDevnet,
  patience,
  price,
  startClaimingDevnet,
} from "../../testing/claiming-devnet.ts";
import { type ChannelLie, lieAboutChannels } from "../../testing/lying-escrow.ts";
import { type NodeAnswer, type NodeCall, startNodeProxy } from "../../testing/node-proxy.ts";

let here: ClaimingDevnet;
let channels: ClaimingDevnet["channels"];
let lie: ChannelLie;
let odd: ChannelConfig;
let other: ChannelConfig;

beforeEach(async () => {
  lie = undefined;
  here = await startClaimingDevnet("sqlite");
  channels = here.channels;
  odd = channels.configOf();
  other = channels.configOf();
  await channels.deposit(odd, price);
  await channels.deposit(other, 20_000n);
});

afterEach(() => here.stop());

/** An answer of a node to a call; `undefined`: the chain's. */
type Answer = (call: NodeCall) => NodeAnswer | undefined | Promise<NodeAnswer | undefined>;

/** A facilitator that asks a node which may lie before another one. */
async function startBehind(answer: Answer = () => undefined, ofNext: Answer = () => undefined) {
  const liar = await startNodeProxy(here.devnet.rpcUrl, async (call, ask) => {
    return (await answer(call)) ?? lieAboutChannels(call, ask, lie);
  });
  onTestFinished(liar.close);
  const next = await startNodeProxy(
    here.devnet.rpcUrl,
    async (call, ask) => (await ofNext(call)) ?? ask(),
  );
  onTestFinished(next.close);
  return here.start({}, { network: { rpcUrls: [liar.url, next.url] } });
}

/** Whether a call asks for the state of one block. */
const isOfBlock = ({ method, params }: NodeCall) =>
  method === "eth_call" && typeof params[1] === "object";

/** Mines until the watcher has come above the present head. */
async function watchedOn(facilitator: CoinslotFacilitator) {
  const head = Number(await here.devnet.client.getBlockNumber());
  await vi.waitFor(async () => {
    await here.devnet.mine(1);
    expect(await here.metric(facilitator, "coinslot_channels_watched_block")).toBeGreaterThan(head);
  }, patience);
}

it.each<[string, ChannelLie]>([
  ["an impossible sum", { balance: 1n, totalClaimed: 2n }],
  ["malformed data", { data: "0x1234" }],
])("%s of one channel is asked of the next endpoint, and holds up no other", async (_, shown) => {
  const facilitator = await startBehind();
  await here.buyOnce(facilitator, price, odd);
  await here.buyOnce(facilitator, price, other);
  lie = { ...shown, ids: [channels.idOf(odd)] };
  await channels.deposit(odd, price, { salt: `0x${"1".repeat(64)}` });
  await watchedOn(facilitator);
  await channels.withdraw(other, 20_000n);
  await here.claimed(price, other);
  expect(await here.buyOnce(facilitator, 2n * price, odd)).toBe(true);
});

it("channels are read of the next endpoint where the first one reverts", async () => {
  let reverts = false;
  const facilitator = await startBehind((call) =>
    reverts && isOfBlock(call)
      ? { error: { code: 3, message: "execution reverted", data: "0x" } }
      : undefined,
  );
  await here.buyOnce(facilitator, price, odd);
  reverts = true;
  await channels.deposit(odd, price, { salt: `0x${"1".repeat(64)}` });
  await watchedOn(facilitator);
  expect(await here.buyOnce(facilitator, 2n * price, odd)).toBe(true);
});

it.each([
  ["always", () => true],
  ["each second time", (count: number) => count % 2 === 0],
])(
  "a first node that has null for old states hides not that the next one has pruned them, as it says %s",
  async (_, isRefused) => {
    let isOld = false;
    let pruned = 0;
    /** Whether a call asks for the state of another block than the head. */
    const isOfOldBlock = async (call: NodeCall) => {
      if (!isOld || !isOfBlock(call)) return false;
      const { hash } = await here.devnet.client.getBlock();
      return !JSON.stringify(call.params[1]).includes(hash);
    };
    const facilitator = await startBehind(
      async (call) => ((await isOfOldBlock(call)) ? { result: null } : undefined),
      async (call) => {
        if (!(await isOfOldBlock(call))) return undefined;
        pruned += 1;
        const error = { code: -32_000, message: "missing trie node" };
        return isRefused(pruned) ? { error } : { result: null };
      },
    );
    await here.buyOnce(facilitator, price, odd);
    isOld = true;
    await channels.deposit(odd, price, { salt: `0x${"1".repeat(64)}` });
    await watchedOn(facilitator);
    expect(await here.buyOnce(facilitator, 2n * price, odd)).toBe(true);
    expect(pruned).toBeGreaterThan(0);
  },
);
