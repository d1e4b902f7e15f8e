import type { Hex } from "@coinslot/protocol";
import { expect, it } from "vitest";
import type { CallOutcome } from "./call-facilitator.ts";
import type { EscrowRecord, RecordedChannel } from "./channel-record.ts";
import type { HostedCall } from "./hosted-run.ts";
import { findCallViolations } from "./judge-calls.ts";

const channelId: Hex = `0x${"01".repeat(32)}`;
const hash: Hex = `0x${"02".repeat(32)}`;
const first = 100n;

const done: CallOutcome = { isDone: true, hash, amount: undefined, reason: "", attempts: 1 };
const callOf = (kind: HostedCall["kind"], amount: bigint, outcome: Partial<CallOutcome> = {}) => ({
  ...{ kind, amount, isRepeated: false },
  outcome: { ...done, ...(kind === "claim" ? {} : { amount }), ...outcome },
});
const calls = [
  callOf("deposit", 100n),
  { ...callOf("deposit", 100n), isRepeated: true },
  callOf("claim", 30n),
  callOf("refund", 20n),
];
const onChain: RecordedChannel = {
  ...{ balance: 180n, totalClaimed: 30n, deposits: [100n, 100n], refunds: [20n] },
  ...{ withdrawals: [], claims: [] },
};
const rest = { claimed: 30n, settled: 30n, arrived: 30n, transactions: 1, nonce: 4, waiting: 0 };

function judge(
  parts: {
    calls?: HostedCall[];
    onChain?: Partial<RecordedChannel>;
    rest?: Partial<EscrowRecord>;
    mined?: readonly Hex[];
  } = {},
) {
  const channels = new Map([[channelId, { ...onChain, ...parts.onChain }]]);
  const { mined = [hash] } = parts;
  return findCallViolations(async (each) => mined.includes(each), {
    ...{ sellers: [{ channelId, calls: parts.calls ?? calls }], first },
    escrow: { channels, ...rest, ...parts.rest },
  });
}

it("finds nothing where the chain has each call once, as it was answered", async () => {
  expect(await judge()).toEqual([]);
});

it.each([
  ["a lost deposit", { onChain: { deposits: [100n] } }, /deposited 100, asked for 100,100/],
  ["a deposit made twice", { onChain: { deposits: [100n, 100n, 100n] } }, /deposited/],
  ["a refund made twice", { onChain: { refunds: [20n, 20n] } }, /refunded 20,20/],
  ["a claim that is not there", { onChain: { totalClaimed: 0n } }, /0 claimed of 30/],
  ["a claim of more", { onChain: { totalClaimed: 31n } }, /31 claimed of 30/],
  ["an answer with another hash", { mined: [] }, /is not on the chain/],
  [
    "an answer of another amount",
    { calls: [...calls.slice(0, 3), callOf("refund", 20n, { amount: 19n })] },
    /answered as one of 19/,
  ],
  [
    "a call that came to nothing",
    { calls: [...calls.slice(0, 3), callOf("refund", 20n, { isDone: false, reason: "why" })] },
    /came to nothing: why/,
  ],
  ["money that did not arrive", { rest: { arrived: 29n } }, /arrived 29/],
  ["a transaction that waits", { rest: { waiting: 1 } }, /1 transactions still wait/],
])("finds %s", async (_, parts, words) => {
  expect((await judge(parts)).join("\n")).toMatch(words);
});
