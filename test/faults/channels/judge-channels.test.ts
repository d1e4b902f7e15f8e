import type { Hex } from "@coinslot/protocol";
import { numberToHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, it } from "vitest";
import type { BoughtVoucher } from "./buy-voucher.ts";
import type { ChannelBuyer } from "./channel-buyer.ts";
import type { RecordedChannel } from "./channel-record.ts";
import { type ChannelEvidence, findChannelViolations } from "./judge-channels.ts";

const channelId = numberToHex(1, { size: 32 });
const address: Hex = `0x${"11".repeat(20)}`;
const privateKey = generatePrivateKey();

const bought: BoughtVoucher = {
  voucher: {
    number: 7,
    ...{ path: "/report/7", method: "GET", flow: "authorization", key: undefined },
    ...{ twin: "none", hangsUpAfterMs: undefined, failsFirst: false },
  },
  ...{ outcome: "served", attempts: 1, mayHaveRun: 1 },
};

const buyer: ChannelBuyer = {
  book: {
    config: {
      ...{ payer: address, payerAuthorizer: address, receiver: address, token: address },
      ...{ receiverAuthorizer: address, withdrawDelay: 900, salt: channelId },
    },
    ...{ channelId, payer: { ...privateKeyToAccount(privateKey), privateKey } },
    ...{ base: 1_000n, possible: new Set([1_000n]), signed: 1_000n },
    ...{ mayBeRefused: true, faults: [] },
  },
  ...{
    bought: [bought],
    withdrawals: [{ channelId, charged: 1_000n }],
    finished: 0,
  },
};

const onChain: RecordedChannel = {
  ...{ balance: 5_000n, totalClaimed: 1_000n, deposits: [5_000n], refunds: [] },
  withdrawals: [{ amount: 5_000n, balance: 5_000n, totalClaimed: 0n, finalizeAfter: 2_000 }],
  claims: [{ totalClaimed: 1_000n, time: 1_999 }],
};

const row = { channelId, charged: 1_000n, ceiling: 1_000n, lost: 0n };

/** Records of one channel that sold once, was claimed in time, and is settled. */
function evidence(
  change: {
    buyer?: Partial<ChannelBuyer>;
    book?: Partial<ChannelBuyer["book"]>;
    row?: Partial<typeof row>;
    chain?: Partial<RecordedChannel>;
    ledger?: Partial<ChannelEvidence["ledger"]>;
    escrow?: Partial<ChannelEvidence["escrow"]>;
    runs?: ChannelEvidence["runs"];
  } = {},
): ChannelEvidence {
  return {
    buyers: [{ ...buyer, ...change.buyer, book: { ...buyer.book, ...change.book } }],
    ledger: {
      channels: [{ ...row, ...change.row }],
      ...{ dues: 0, moving: 0, sentClaims: 0 },
      ...change.ledger,
    },
    escrow: {
      channels: new Map([[channelId, { ...onChain, ...change.chain }]]),
      ...{ claimed: 1_000n, settled: 1_000n, arrived: 1_000n },
      ...{ transactions: 1, nonce: 1, waiting: 0 },
      ...change.escrow,
    },
    runs: change.runs ?? new Map([["/report/7", [1]]]),
  };
}

it("finds nothing where all that was served was charged, claimed in time and settled", () => {
  expect(findChannelViolations(evidence())).toEqual([]);
});

it.each<[string, Parameters<typeof evidence>[0], string]>([
  ["an answer that was not charged", { row: { charged: 0n } }, "the buyer was served 1000"],
  ["a charge that was not served", { book: { possible: new Set([0n]) } }, "has charged 1000"],
  ["a charge that was not signed", { book: { signed: 999n } }, "and 999 was signed"],
  ["a voucher that covers too little", { row: { ceiling: 999n } }, "covers 999 of 1000"],
  ["lost money", { row: { lost: 1n } }, "1 is lost"],
  ["a charge that is not claimed", { chain: { totalClaimed: 0n } }, "is charged, and 0 claimed"],
  [
    "a claim of more than was charged",
    { chain: { claims: [{ totalClaimed: 1_001n, time: 1 }] } },
    "1001 was claimed of 1000",
  ],
  [
    "a claim after the end of a delay",
    { chain: { claims: [{ totalClaimed: 1_000n, time: 2_001 }] } },
    "was not claimed before its withdrawal ended",
  ],
  ["a channel that the ledger has lost", { ledger: { channels: [] } }, "is not in the ledger"],
  ["a handler that never ran", { runs: new Map() }, "its handler never ran"],
  ["a second run", { runs: new Map([["/report/7", [1, 2]]]) }, "ran 2 times for 1 requests"],
  ["a channel that is still due", { ledger: { dues: 1 } }, "1 channels are still due"],
  ["a claim without an end", { ledger: { sentClaims: 1 } }, "1 claims have no end"],
  ["a channel that never became final", { ledger: { moving: 1 } }, "never became final"],
  ["money that the seller did not get", { escrow: { arrived: 0n } }, "arrived 0"],
  ["a transaction that waits", { escrow: { waiting: 1 } }, "1 transactions still wait"],
  ["a fault that its buyer noted", { book: { faults: ["one voucher bought twice"] } }, "twice"],
])("finds %s", (_, change, words) => {
  expect(findChannelViolations(evidence(change)).join("\n")).toContain(words);
});
