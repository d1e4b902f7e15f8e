import { readFileSync } from "node:fs";
import {
  addressSchema,
  bytes32Schema,
  channelConfigSchema,
  channelContracts,
  channelSettlementAbi,
} from "@coinslot/protocol";
import { type Abi, type Hex, toEventSelector, toFunctionSelector, toHex } from "viem";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import * as z from "zod";
import { testBatchSettlement } from "../contracts/test-batch-settlement.generated.ts";
import {
  type ChannelFixture,
  channelEventsOf,
  createChannelFixture,
  encodeClaim,
  encodeRefund,
} from "./channel-fixture.ts";
import { type Devnet, startDevnet } from "./devnet.ts";
import { placeChannels } from "./place-channels.ts";

const hex = z.templateLiteral(["0x", z.string().regex(/^[0-9a-f]*$/i)]);
const vectors = z
  .object({
    typehashes: z.record(z.string(), bytes32Schema),
    typedData: z.object({
      domain: z.object({ verifyingContract: addressSchema, name: z.string(), version: z.string() }),
      channelConfig: channelConfigSchema,
      channelId: bytes32Schema,
      secondChannelConfig: channelConfigSchema,
      secondChannelId: bytes32Schema,
      voucher: z.object({ maxClaimableAmount: z.string(), digest: bytes32Schema, signature: hex }),
      secondVoucher: z.object({ maxClaimableAmount: z.string(), signature: hex }),
      refund: z.object({ digest: bytes32Schema, signature: hex }),
      claimBatch: z.object({ digest: bytes32Schema, signature: hex, calldata: hex }),
      erc3009Deposit: z.object({ amount: z.string(), collectorData: hex, depositCalldata: hex }),
    }),
    gas: z.record(z.string(), z.unknown()),
  })
  .parse(
    JSON.parse(
      readFileSync(
        new URL("../../protocol/src/testing/channel-vectors.json", import.meta.url),
        "utf8",
      ),
    ),
  );

const abi = channelSettlementAbi;
const contract = { address: channelContracts.settlement, abi };

let devnet: Devnet;
let channels: ChannelFixture;
let start: Hex;

beforeAll(async () => {
  devnet = await startDevnet();
  await placeChannels(devnet);
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
  channels = createChannelFixture(devnet);
});
afterAll(() => devnet?.stop());
beforeEach(async () => {
  start = await devnet.snapshot();
});
afterEach(() => devnet.revert(start));

describe("the interface of the escrow", () => {
  const signaturesOf = (source: Abi, type: string) =>
    source.flatMap((item) => {
      if (item.type !== type || !("name" in item)) return [];
      const name =
        item.type === "event"
          ? toEventSelector(item)
          : toFunctionSelector({
              type: "function",
              name: item.name,
              inputs: "inputs" in item ? item.inputs : [],
              outputs: [],
              stateMutability: "view",
            });
      return [`${item.name} ${name}`];
    });

  it.each(["function", "event", "error"])("has every published %s, and no other", (type) => {
    const theirs = signaturesOf(abi, type).toSorted();
    expect(signaturesOf(testBatchSettlement.abi, type).toSorted()).toEqual(theirs);
  });

  it("has the published selectors", () => {
    const all = ["function", "event", "error"].flatMap((type) => signaturesOf(abi, type));
    const published = [
      "deposit 0x140f1e75",
      "claim 0x29237b0c",
      "claimWithSignature 0xe43ce1f2",
      "settle 0x9db32a8f",
      "refund 0xdce4bfae",
      "refundWithSignature 0xb77433e9",
      "initiateWithdraw 0xcf5cf3dc",
      "finalizeWithdraw 0xe88377b1",
      "multicall 0xac9650d8",
      "channels 0x7a7ebd7b",
      "pendingWithdrawals 0xb7f06ebe",
      "refundNonce 0xf0dc792e",
      "receivers 0x21ff6389",
      "getChannelId 0x5e5e0b87",
      "getVoucherDigest 0x862bb199",
      "getRefundDigest 0xe25cf189",
      "getClaimBatchDigest 0x488ccc3b",
      "eip712Domain 0x84b0196e",
      "ChannelCreated 0x69d8248d5566bdb2ebc4d218970710d8378a2ff9b709a999e052b71970f808fa",
      "ChannelClosed 0x8d5942f197f362dfd44dfdc1b0b7a9721c9151b67f55817c83349271d3c08d37",
      "Deposited 0x6c2a09353b5e75e70d0b9778b80a413809bb235d46c211811c474b3346791d89",
      "Claimed 0x36bd546bb573e8921fdbfd934bbed62d872796b01792cd240cce27f79dd3eddd",
      "Settled 0x7337b4386b690fdb8ba66905b92b9d45d33bc6626ee2620c905fb150ec0cc47d",
      "Refunded 0xa84286cf8ebc7903a663c77c8d99aa92b600d4c2fcca872a5d4a663db4eb394b",
      "WithdrawInitiated 0xe4280d0d903c7f258f62b07c62f262377cbaa23f7791d78126e6446e0f0e3c23",
      "WithdrawFinalized 0x546ce1e2242cd930c196bd08b894443562d709b4fffe4f028a75a6d233efc6e3",
      "InvalidChannel 0xea3a9a39",
      "ZeroDeposit 0x56316e87",
      "DepositOverflow 0x1132981b",
      "InvalidSignature 0x8baa579f",
      "NotReceiverAuthorizer 0xf5e2237d",
      "NotAuthorizedToClaim 0xdefb7069",
      "NotAuthorizedToRefund 0x7864f008",
      "ClaimExceedsCeiling 0xf1789775",
      "ClaimExceedsBalance 0x7d8242b6",
      "WithdrawalAlreadyPending 0xa2aed0f0",
      "WithdrawalNotPending 0x3a0a1ca6",
      "NotAuthorizedToFinalizeWithdraw 0x15f969d5",
      "WithdrawDelayNotElapsed 0xf3965827",
      "NothingToWithdraw 0xd0d04f60",
      "WithdrawAmountExceedsAvailable 0x6d3d5764",
      "WithdrawDelayOutOfRange 0x4574fab6",
      "EmptyBatch 0xc2e5347d",
      "DepositCollectionFailed 0xeb43592c",
      "InvalidCollector 0x18b1afd4",
      "InvalidRefundNonce 0x164f1afe",
      "ZeroRefund 0xd758525c",
      "ReentrancyGuardReentrantCall 0x3ee5aeb5",
      "SafeERC20FailedOperation 0x5274afe7",
      "ECDSAInvalidSignature 0xf645eedf",
      "ECDSAInvalidSignatureLength 0xfce698f7",
      "ECDSAInvalidSignatureS 0xd78bce0c",
    ];
    expect(all).toEqual(expect.arrayContaining(published));
  });
});

describe("the vectors of the reference", () => {
  const { typedData } = vectors;

  it("have the escrow's type hashes, domain and digests", async () => {
    const read = <const Name extends string>(functionName: Name, args: readonly unknown[] = []) =>
      devnet.client.readContract({
        address: contract.address,
        abi: abi as Abi,
        functionName,
        args,
      });
    for (const [name, hash] of Object.entries(vectors.typehashes)) {
      expect(await read(name)).toBe(hash);
    }
    const [fields, name, version, chainId, verifyingContract] = await devnet.client.readContract({
      ...contract,
      functionName: "eip712Domain",
    });
    expect({ fields, name, version, chainId, verifyingContract }).toEqual({
      fields: "0x0f",
      ...typedData.domain,
      chainId: 9745n,
    });
    const { channelConfig, channelId, voucher, refund, claimBatch } = typedData;
    expect(await read("getChannelId", [channelConfig])).toBe(channelId);
    const ceiling = BigInt(voucher.maxClaimableAmount);
    expect(await read("getVoucherDigest", [channelId, ceiling])).toBe(voucher.digest);
    expect(await read("getRefundDigest", [channelId, 0n, 500n])).toBe(refund.digest);
    const rows = [
      [channelConfig, voucher, 400n],
      [typedData.secondChannelConfig, typedData.secondVoucher, 3000n],
    ] as const;
    const claims = rows.map(([channel, { maxClaimableAmount, signature }, totalClaimed]) => ({
      voucher: { channel, maxClaimableAmount: BigInt(maxClaimableAmount) },
      signature,
      totalClaimed,
    }));
    expect(await read("getClaimBatchDigest", [claims])).toBe(claimBatch.digest);
    expect(encodeClaim(claims, claimBatch.signature)).toBe(claimBatch.calldata);
  });

  it("are executed: a deposit, a batch of two claims, a refund", async () => {
    const { channelConfig, secondChannelConfig, erc3009Deposit, claimBatch, refund } = typedData;
    const deposited = await channels.send(erc3009Deposit.depositCalldata);
    expect(channelEventsOf(deposited).map(({ eventName }) => eventName)).toEqual([
      "ChannelCreated",
      "Deposited",
    ]);
    await channels.deposit(secondChannelConfig, 3000n);
    const claimed = await channels.send(claimBatch.calldata);
    expect(channelEventsOf(claimed)).toMatchObject([
      { eventName: "Claimed", args: { claimAmount: 400n, newTotalClaimed: 400n } },
      { eventName: "Claimed", args: { channelId: typedData.secondChannelId, claimAmount: 3000n } },
    ]);
    await channels.send(encodeRefund(channelConfig, 500n, 0n, refund.signature));
    expect(await channels.stateOf(channelConfig)).toMatchObject({
      balance: 9500n,
      totalClaimed: 400n,
      refundNonce: 1n,
    });
  });
});

describe("the gas of a call", () => {
  /** Published figures of the deployed contracts, on the same kind of token. */
  const published = (name: string) => z.number().parse(vectors.gas[name]);

  it("is near that of the deployed contracts, so that figures of a devnet mean something", async () => {
    const configs = Array.from({ length: 10 }, () => channels.configOf());
    const used: Record<string, bigint> = {};
    const note = (name: string, receipt: { gasUsed: bigint }) => {
      used[name] = receipt.gasUsed;
    };
    for (const [index, config] of configs.entries()) {
      note(
        index === 0 ? "deposit_first_ever" : "deposit_new_channel",
        await channels.deposit(config, 1000n),
      );
    }
    const [config] = configs;
    if (config === undefined) throw new Error("No channel.");
    note("deposit_top_up", await channels.deposit(config, 1000n, { salt: toHex(1, { size: 32 }) }));
    const claim = async (count: number, ceiling: bigint) => {
      const rows = configs.slice(0, count).map((each) => channels.rowOf(each, ceiling));
      return channels.claimSigned(await Promise.all(rows));
    };
    note("claimWithSignature_1_first_ever_for_receiver", await claim(1, 1n));
    note("claimWithSignature_1_again", await claim(1, 2n));
    note("claimWithSignature_1_noop_replay", await claim(1, 2n));
    note("claimWithSignature_10_first_on_channel", await claim(10, 3n));
    note("settle_first", await channels.settle());
    note("settle_nothing", await channels.settle());
    note("initiateWithdraw", await channels.withdraw(config, 10n));
    const figures = Object.entries(used).map(
      ([name, gas]) => [name, Number(gas) / published(name)] as const,
    );
    const far = figures.filter(([, ratio]) => ratio < 0.97 || ratio > 1.03);
    expect(far).toEqual([]);
  });
});
