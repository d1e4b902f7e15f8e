import { type ChannelConfig, channelContracts, toLowerHex } from "@coinslot/protocol";
import { type Address, erc20Abi, type Hex, parseSignature, toHex, zeroAddress } from "viem";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  type ChannelFixture,
  channelEventsOf,
  createChannelFixture,
  encodeClaim,
  encodeRefund,
} from "./channel-fixture.ts";
import { type Devnet, startDevnet } from "./devnet.ts";
import { placeChannels } from "./place-channels.ts";

const delay = 900;

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

async function pass(seconds: number): Promise<void> {
  await devnet.client.increaseTime({ seconds });
  await devnet.mine();
}

function tokensOf(account: Address): Promise<bigint> {
  const token = { address: devnet.token, abi: erc20Abi };
  return devnet.client.readContract({ ...token, functionName: "balanceOf", args: [account] });
}

/** A channel of the buyer with a thousand units. */
async function open(parts: Partial<ChannelConfig> = {}): Promise<ChannelConfig> {
  const config = channels.configOf(parts);
  await channels.deposit(config, 1000n);
  return config;
}

const namesOf = (receipt: Parameters<typeof channelEventsOf>[0]) =>
  channelEventsOf(receipt).map(({ eventName }) => eventName);

describe("a deposit", () => {
  it("opens a channel, and tops it up", async () => {
    const config = channels.configOf();
    const before = await tokensOf(config.payer);
    const first = await channels.deposit(config, 1000n);
    expect(channelEventsOf(first)).toMatchObject([
      { eventName: "ChannelCreated", args: { channelId: channels.idOf(config) } },
      { eventName: "Deposited", args: { amount: 1000n, newBalance: 1000n } },
    ]);
    const second = await channels.deposit(config, 500n, { salt: toHex(1, { size: 32 }) });
    expect(namesOf(second)).toEqual(["Deposited"]);
    expect(await channels.stateOf(config)).toMatchObject({ balance: 1500n, totalClaimed: 0n });
    expect(before - (await tokensOf(config.payer))).toBe(1500n);
  });

  it("is refused for a config that no channel may have", async () => {
    for (const key of ["payer", "receiver", "receiverAuthorizer", "token"] as const) {
      const config = channels.configOf({ [key]: zeroAddress });
      const deposit = channels.deposit(config, 1n, { collectorData: "0x" });
      await expect(deposit).rejects.toThrow("InvalidChannel");
    }
    for (const withdrawDelay of [899, 2_592_001]) {
      const deposit = channels.deposit(channels.configOf({ withdrawDelay }), 1n);
      await expect(deposit).rejects.toThrow("WithdrawDelayOutOfRange");
    }
    await open({ withdrawDelay: 2_592_000, payerAuthorizer: zeroAddress });
    await expect(channels.deposit(channels.configOf(), 0n)).rejects.toThrow("ZeroDeposit");
    await expect(
      channels.deposit(channels.configOf(), 1n, { collector: zeroAddress }),
    ).rejects.toThrow("InvalidCollector");
  });

  it("funds only the channel that its payer has signed for, and once", async () => {
    const config = channels.configOf();
    const collectorData = await channels.signDeposit(config, 1000n);
    const other = channels.deposit(channels.configOf(), 1000n, { collectorData });
    await expect(other).rejects.toThrow("invalid signature");
    await expect(channels.deposit(config, 999n, { collectorData })).rejects.toThrow(
      "invalid signature",
    );
    await channels.deposit(config, 1000n, { collectorData });
    await expect(channels.deposit(config, 1000n, { collectorData })).rejects.toThrow(
      "authorization is used",
    );
  });

  it("is refused where the token keeps a fee, or the collector brings nothing", async () => {
    const token = await devnet.deployMisbehavingToken("takesFee");
    await devnet.mint({ token, to: devnet.accounts.buyer.address, amount: 10_000n });
    const config = channels.configOf({ token: toLowerHex(token) });
    await expect(channels.deposit(config, 1000n)).rejects.toThrow("exceeds balance");
    const collector = "0x00000000000000000000000000000000000000c0";
    await devnet.client.setCode({ address: collector, bytecode: "0x00" });
    const idle = channels.deposit(channels.configOf(), 1000n, { collector });
    await expect(idle).rejects.toThrow("DepositCollectionFailed");
  });

  it("is collected for the escrow only", async () => {
    const collect = devnet.client.simulateContract({
      address: channelContracts.erc3009Collector,
      abi: collectorAbi,
      functionName: "collect",
      args: [zeroAddress, devnet.token, 1n, toHex(1, { size: 32 }), "0x"],
    });
    await expect(collect).rejects.toThrow("OnlyX402BatchSettlement");
  });
});

const collectorAbi = [
  {
    type: "function",
    name: "collect",
    stateMutability: "nonpayable",
    inputs: [
      { name: "payer", type: "address" },
      { name: "token", type: "address" },
      { name: "amount", type: "uint256" },
      { name: "channelId", type: "bytes32" },
      { name: "collectorData", type: "bytes" },
    ],
    outputs: [],
  },
  { type: "error", name: "OnlyX402BatchSettlement", inputs: [] },
] as const;

describe("a claim", () => {
  it("takes a part of a voucher, and then the rest of it", async () => {
    const config = await open();
    const part = await channels.rowOf(config, 800n, { totalClaimed: 300n });
    expect(channelEventsOf(await channels.claimSigned([part]))).toMatchObject([
      { eventName: "Claimed", args: { claimAmount: 300n, newTotalClaimed: 300n } },
    ]);
    await channels.claimSigned([{ ...part, totalClaimed: 800n }]);
    expect(await channels.stateOf(config)).toMatchObject({ balance: 1000n, totalClaimed: 800n });
  });

  it("skips a row that is claimed already, whatever its signature, and a row that comes twice", async () => {
    const config = await open();
    const row = await channels.rowOf(config, 500n);
    expect(namesOf(await channels.claimSigned([row, row]))).toEqual(["Claimed"]);
    const forged = { ...row, signature: "0x1234" } as const;
    expect(namesOf(await channels.claimSigned([forged]))).toEqual([]);
    const lower = { ...forged, totalClaimed: 499n };
    expect(namesOf(await channels.claimSigned([lower]))).toEqual([]);
  });

  it("is reverted as a whole by one bad row", async () => {
    const [good, bad] = [await open(), await open()];
    const rows = [await channels.rowOf(good, 500n), await channels.rowOf(bad, 1001n)];
    await expect(channels.claimSigned(rows)).rejects.toThrow("ClaimExceedsBalance");
    expect(await channels.stateOf(good)).toMatchObject({ totalClaimed: 0n });
  });

  it("is refused above the voucher, above the balance, and without rows", async () => {
    const config = await open();
    const row = await channels.rowOf(config, 500n, { totalClaimed: 501n });
    await expect(channels.claimSigned([row])).rejects.toThrow("ClaimExceedsCeiling");
    const both = await channels.rowOf(config, 1000n, { totalClaimed: 1001n });
    await expect(channels.claimSigned([both])).rejects.toThrow("ClaimExceedsCeiling");
    await expect(channels.claim([])).rejects.toThrow("EmptyBatch");
    await expect(channels.claimSigned([], "0x")).rejects.toThrow("EmptyBatch");
    // A ceiling above the balance is no fault: the claim is below both.
    await channels.claimSigned([
      await channels.rowOf(config, 2n ** 128n - 1n, { totalClaimed: 1000n }),
    ]);
  });

  it("needs the receiver, its authorizer, or that one's signature over exactly these rows", async () => {
    const { seller, deployer, relayer, buyer } = devnet.accounts;
    const config = await open();
    const row = await channels.rowOf(config, 100n);
    await expect(channels.claim([row], relayer)).rejects.toThrow("NotAuthorizedToClaim");
    await channels.claim([row], seller);
    await channels.claim([await channels.rowOf(config, 200n)], deployer);
    const next = await channels.rowOf(config, 300n);
    const forged = await channels.signBatch([next], buyer);
    await expect(channels.claimSigned([next], forged)).rejects.toThrow("InvalidSignature");
    const signature = await channels.signBatch([next]);
    const changed = { ...next, totalClaimed: 299n };
    await expect(channels.claimSigned([changed], signature)).rejects.toThrow("InvalidSignature");
    const foreign = await open({ receiverAuthorizer: toLowerHex(seller.address) });
    const rows = [next, await channels.rowOf(foreign, 1n)];
    await expect(channels.claimSigned(rows)).rejects.toThrow("NotReceiverAuthorizer");
  });

  it("takes one form of a voucher's signature: 65 bytes, v 27 or 28, low s", async () => {
    const config = await open();
    const row = await channels.rowOf(config, 100n);
    const { r, s, yParity } = parseSignature(row.signature);
    const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
    const highS = toHex(order - BigInt(s), { size: 32 });
    const body = `${r}${s.slice(2)}` as const;
    const compact = `${r}${toHex(BigInt(s) | (BigInt(yParity) << 255n), { size: 32 }).slice(2)}`;
    const forms = [
      [`${r}${highS.slice(2)}${toHex(28 - yParity).slice(2)}`, "ECDSAInvalidSignatureS"],
      [`${body}0${yParity}`, "ECDSAInvalidSignature"],
      [compact, "ECDSAInvalidSignatureLength"],
      [`${row.signature}00`, "ECDSAInvalidSignatureLength"],
      ["0x", "ECDSAInvalidSignatureLength"],
      [`${body}${toHex(28 - yParity).slice(2)}`, "InvalidSignature"],
    ] as const;
    for (const [signature, error] of forms) {
      const claim = channels.claimSigned([{ ...row, signature: signature as Hex }]);
      await expect(claim).rejects.toThrow(new Error(error));
    }
    await channels.claimSigned([row]);
  });

  it("checks a payerAuthorizer by its key, even if it has code", async () => {
    const { buyer, others } = devnet.accounts;
    const [delegated] = others;
    if (delegated === undefined) throw new Error("No other accounts.");
    const wallet = await devnet.deploySmartAccount({ owner: buyer.address });
    const config = await open({ payerAuthorizer: toLowerHex(wallet) });
    await expect(channels.claimSigned([await channels.rowOf(config, 1n)])).rejects.toThrow(
      "InvalidSignature",
    );
    await devnet.delegate(delegated, await devnet.deploySmartAccount({ answer: "refuses" }));
    const hot = await open({ payerAuthorizer: toLowerHex(delegated.address) });
    await channels.claimSigned([await channels.rowOf(hot, 1n, { signer: delegated })]);
  });

  it("asks a payer with code where no payerAuthorizer is named", async () => {
    const { buyer } = devnet.accounts;
    const wallet = await devnet.deploySmartAccount({ owner: buyer.address });
    await devnet.mint({ to: wallet, amount: 1000n });
    const config = channels.configOf({ payer: toLowerHex(wallet), payerAuthorizer: zeroAddress });
    await channels.deposit(config, 1000n);
    const row = await channels.rowOf(config, 10n);
    const refused = { ...row, signature: "0x1234" } as const;
    await expect(channels.claimSigned([refused])).rejects.toThrow("InvalidSignature");
    await channels.claimSigned([row]);
    const plain = await open({ payerAuthorizer: zeroAddress });
    await channels.claimSigned([await channels.rowOf(plain, 10n)]);
    const short = { ...(await channels.rowOf(plain, 20n)), signature: "0x12" } as const;
    await expect(channels.claimSigned([short])).rejects.toThrow("InvalidSignature");
  });
});

describe("a settle", () => {
  it("sends what is claimed and not settled, and nothing silently", async () => {
    const receiver = devnet.accounts.seller.address;
    expect(namesOf(await channels.settle())).toEqual([]);
    const [first, second] = [await open(), await open()];
    await channels.claimSigned([
      await channels.rowOf(first, 100n),
      await channels.rowOf(second, 200n),
    ]);
    const before = await tokensOf(receiver);
    expect(channelEventsOf(await channels.settle())).toMatchObject([
      { eventName: "Settled", args: { amount: 300n, receiver } },
    ]);
    expect(namesOf(await channels.settle())).toEqual([]);
    expect((await tokensOf(receiver)) - before).toBe(300n);
  });
});

describe("a refund", () => {
  it("returns what is not claimed, at most, and closes an unused channel", async () => {
    const config = await open();
    await channels.claimSigned([await channels.rowOf(config, 400n)]);
    const before = await tokensOf(config.payer);
    expect(channelEventsOf(await channels.refundSigned(config, 9999n, 0n))).toMatchObject([
      { eventName: "Refunded", args: { amount: 600n } },
    ]);
    expect((await tokensOf(config.payer)) - before).toBe(600n);
    const unused = await open();
    expect(namesOf(await channels.refund(unused, 1000n))).toEqual(["Refunded", "ChannelClosed"]);
    const reopened = await channels.deposit(unused, 5n, { salt: toHex(2, { size: 32 }) });
    expect(namesOf(reopened)).toEqual(["ChannelCreated", "Deposited"]);
  });

  it("raises the nonce also where nothing moves, and ends older signatures", async () => {
    const config = await open();
    const signed = encodeRefund(config, 1n, 0n, await channels.signRefund(config, 1n, 0n));
    await channels.refund(config, 1000n);
    await expect(channels.send(signed)).rejects.toThrow("InvalidRefundNonce");
    expect(namesOf(await channels.refundSigned(config, 1n, 1n))).toEqual([]);
    expect(await channels.stateOf(config)).toMatchObject({ refundNonce: 2n, balance: 0n });
    await expect(channels.refundSigned(config, 0n, 2n)).rejects.toThrow("ZeroRefund");
  });

  it("needs the receiver's side", async () => {
    const config = await open();
    const { buyer, relayer } = devnet.accounts;
    await expect(channels.refund(config, 1n, buyer)).rejects.toThrow("NotAuthorizedToRefund");
    const forged = encodeRefund(config, 1n, 0n, await channels.signRefund(config, 1n, 0n, relayer));
    await expect(channels.send(forged)).rejects.toThrow("InvalidSignature");
  });

  it("protects no unclaimed voucher: the claim comes first, in one multicall", async () => {
    const config = await open();
    const row = await channels.rowOf(config, 400n);
    const calls = [
      encodeClaim([row], await channels.signBatch([row])),
      encodeRefund(config, 1000n, 0n, await channels.signRefund(config, 1000n, 0n)),
    ];
    expect(namesOf(await channels.multicall(calls))).toEqual(["Claimed", "Refunded"]);
    const other = await open();
    await channels.refund(other, 1000n);
    const late = channels.claimSigned([await channels.rowOf(other, 400n)]);
    await expect(late).rejects.toThrow("ClaimExceedsBalance");
  });

  it("a refund in a multicall is reverted with the call that reverts", async () => {
    const config = await open();
    const row = await channels.rowOf(config, 1001n);
    const calls = [
      encodeRefund(config, 1n, 0n, await channels.signRefund(config, 1n, 0n)),
      encodeClaim([row], await channels.signBatch([row])),
    ];
    await expect(channels.multicall(calls)).rejects.toThrow("ClaimExceedsBalance");
    expect(await channels.stateOf(config)).toMatchObject({ balance: 1000n, refundNonce: 0n });
  });
});

describe("a timed withdrawal", () => {
  it("waits for its delay, and sends at most what is not claimed by then", async () => {
    const config = await open();
    const initiated = channelEventsOf(await channels.withdraw(config, 800n));
    expect(initiated).toMatchObject([{ eventName: "WithdrawInitiated", args: { amount: 800n } }]);
    await expect(channels.finish(config)).rejects.toThrow("WithdrawDelayNotElapsed");
    await pass(delay);
    // The delay is over, and the claim still counts.
    await channels.claimSigned([await channels.rowOf(config, 500n)]);
    expect(channelEventsOf(await channels.finish(config))).toMatchObject([
      { eventName: "WithdrawFinalized", args: { amount: 500n } },
    ]);
    const late = channels.claimSigned([await channels.rowOf(config, 501n)]);
    await expect(late).rejects.toThrow("ClaimExceedsBalance");
  });

  it("leaves what it did not ask for, whatever comes in meanwhile", async () => {
    const config = await open();
    await channels.withdraw(config, 300n);
    await channels.deposit(config, 100n, { salt: toHex(3, { size: 32 }) });
    await channels.claimSigned([await channels.rowOf(config, 50n)]);
    expect(await channels.stateOf(config)).toMatchObject({ pending: 300n });
    await pass(delay);
    await channels.finish(config);
    await channels.claimSigned([await channels.rowOf(config, 800n)]);
    expect(await channels.stateOf(config)).toMatchObject({ balance: 800n, totalClaimed: 800n });
  });

  it("is lowered by a refund, and cleared by one of its amount", async () => {
    const config = await open();
    await channels.withdraw(config, 300n);
    await channels.refund(config, 100n);
    expect(await channels.stateOf(config)).toMatchObject({ pending: 200n });
    await channels.refund(config, 200n);
    expect(await channels.stateOf(config)).toMatchObject({ pending: 0n, initiatedAt: 0 });
    await expect(channels.finish(config)).rejects.toThrow("WithdrawalNotPending");
  });

  it("is refused twice, for nothing, for too much, and to others", async () => {
    const { relayer, seller } = devnet.accounts;
    const config = await open();
    await expect(channels.withdraw(config, 0n)).rejects.toThrow("NothingToWithdraw");
    await expect(channels.withdraw(config, 1001n)).rejects.toThrow(
      "WithdrawAmountExceedsAvailable",
    );
    await expect(channels.withdraw(config, 1n, seller)).rejects.toThrow("InvalidChannel");
    await channels.withdraw(config, 1n);
    await expect(channels.withdraw(config, 1n)).rejects.toThrow("WithdrawalAlreadyPending");
    await expect(channels.finish(config, relayer)).rejects.toThrow(
      "NotAuthorizedToFinalizeWithdraw",
    );
  });

  it("a timed withdrawal by the payerAuthorizer pays the payer, and closes an unused channel", async () => {
    const { relayer } = devnet.accounts;
    const config = await open({ payerAuthorizer: toLowerHex(relayer.address) });
    await channels.withdraw(config, 1000n, relayer);
    await pass(delay);
    const before = await tokensOf(config.payer);
    expect(namesOf(await channels.finish(config, relayer))).toEqual([
      "WithdrawFinalized",
      "ChannelClosed",
    ]);
    expect((await tokensOf(config.payer)) - before).toBe(1000n);
  });

  it("moves nothing where all is claimed meanwhile", async () => {
    const config = await open();
    await channels.withdraw(config, 1000n);
    await channels.claimSigned([await channels.rowOf(config, 1000n)]);
    await pass(delay);
    expect(channelEventsOf(await channels.finish(config))).toMatchObject([
      { eventName: "WithdrawFinalized", args: { amount: 0n } },
    ]);
  });
});

it("a blocked receiver keeps its claim, and gets it once it is not blocked any more", async () => {
  const { client, accounts, token } = devnet;
  const config = await open();
  await channels.claimSigned([await channels.rowOf(config, 100n)]);
  const block = async (isBlocked: boolean) => {
    const args = [accounts.seller.address, isBlocked] as const;
    const request = { address: token, abi: blockAbi, functionName: "setBlocked", args } as const;
    await client.waitForTransactionReceipt({ hash: await client.writeContract(request) });
  };
  await block(true);
  await expect(channels.settle()).rejects.toThrow("account is blacklisted");
  await block(false);
  expect(namesOf(await channels.settle())).toEqual(["Settled"]);
});

const blockAbi = [
  {
    type: "function",
    name: "setBlocked",
    stateMutability: "nonpayable",
    inputs: [
      { name: "account", type: "address" },
      { name: "blocked", type: "bool" },
    ],
    outputs: [],
  },
] as const;
