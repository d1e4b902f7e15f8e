import {
  type Address,
  BaseError,
  ContractFunctionRevertedError,
  encodePacked,
  erc20Abi,
  type Hex,
  keccak256,
  pad,
  parseEventLogs,
  type TransactionReceipt,
} from "viem";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { testEndpoint } from "../contracts/test-endpoint.generated.ts";
import { testOft } from "../contracts/test-oft.generated.ts";
import { testTether } from "../contracts/test-tether.generated.ts";
import { type Devnet, startDevnet } from "./devnet.ts";
import { type LayerZero, startLayerZero } from "./layer-zero.ts";

const [sourceEid, targetEid] = [30101, 30383];
const usdt: Address = "0xdAC17F958D2ee523a2206206994597C13D831ec7";
const adapter: Address = "0x6C96dE32CEa08842dcc4058c14d3aaAD7Fa41dee";
const oft: Address = "0x02ca37966753bDdDf11216B73B16C1dE756A7CF9";
const nativeFee = 1_000_000n;
/** A send's errors come from the OFT, and from the endpoint below it. */
const abi = [...testOft.abi, ...testEndpoint.abi] as const;

let source: Devnet;
let target: Devnet;
let layerZero: LayerZero;
let snapshots: { devnet: Devnet; id: Hex }[] = [];

beforeAll(async () => {
  [source, target] = await Promise.all([startDevnet({ chainId: 1 }), startDevnet()]);
  layerZero = await startLayerZero({
    nativeFee,
    chains: [
      { devnet: source, eid: sourceEid },
      { devnet: target, eid: targetEid },
    ],
  });
  await layerZero.connect([
    { devnet: source, oft: adapter, token: usdt, locks: true },
    { devnet: target, oft, token: target.token, locks: false },
  ]);
  await source.mint({ token: usdt, to: source.accounts.buyer.address, amount: 1_000n });
  await approve(1_000n);
});
afterAll(() => Promise.all([source?.stop(), target?.stop()]));
beforeEach(async () => {
  const take = async (devnet: Devnet) => ({ devnet, id: await devnet.snapshot() });
  snapshots = [await take(source), await take(target)];
});
afterEach(async () => {
  for (const { devnet, id } of snapshots) await devnet.revert(id);
});

async function approve(value: bigint): Promise<TransactionReceipt> {
  const hash = await source.client.writeContract({
    account: source.accounts.buyer,
    address: usdt,
    abi: testTether.abi,
    functionName: "approve",
    args: [adapter, value],
  });
  return source.client.waitForTransactionReceipt({ hash });
}

type Change = { amount?: bigint; least?: bigint; fee?: bigint; value?: bigint; eid?: number };

/** The buyer's `send`, as arguments of a call. */
function sendCall({ amount = 100n, least = amount, fee = nativeFee, value = fee, eid }: Change) {
  const { buyer } = source.accounts;
  const param = {
    dstEid: eid ?? targetEid,
    to: pad(buyer.address),
    amountLD: amount,
    minAmountLD: least,
    extraOptions: "0x0003",
    composeMsg: "0x",
    oftCmd: "0x",
  } as const;
  const args = [param, { nativeFee: fee, lzTokenFee: 0n }, buyer.address] as const;
  const call = { address: adapter, abi, functionName: "send", args, value } as const;
  return { ...call, account: buyer };
}

async function send(change: Change = {}): Promise<TransactionReceipt> {
  const hash = await source.client.writeContract(sendCall(change));
  return source.client.waitForTransactionReceipt({ hash });
}

/** The name of the error that a `send` would revert with. */
async function refusalOf(change: Change): Promise<string | undefined> {
  const error = await source.client.simulateContract(sendCall(change)).catch((reason) => reason);
  if (!(error instanceof BaseError)) return undefined;
  const reverted = error.walk((each) => each instanceof ContractFunctionRevertedError);
  if (!(reverted instanceof ContractFunctionRevertedError)) return undefined;
  return reverted.data?.errorName ?? reverted.signature;
}

function balanceOf(devnet: Devnet, address: Address, owner: Address): Promise<bigint> {
  const call = { address, abi: erc20Abi, functionName: "balanceOf", args: [owner] } as const;
  return devnet.client.readContract(call);
}

async function setPaused(isPaused: boolean): Promise<void> {
  const { client, accounts } = target;
  const call = { address: oft, abi: testOft.abi, functionName: "setPaused" } as const;
  const hash = await client.writeContract({ ...call, account: accounts.seller, args: [isPaused] });
  await client.waitForTransactionReceipt({ hash });
}

describe("an omnichain token", () => {
  it("is locked on one chain and minted on the other, under one GUID", async () => {
    const { address: buyer } = source.accounts.buyer;
    const receipt = await send();
    const [sent] = parseEventLogs({ abi: testOft.abi, eventName: "OFTSent", logs: receipt.logs });
    // LayerZero's GUID: number, source and destination of the message.
    const guid = keccak256(
      encodePacked(
        ["uint64", "uint32", "bytes32", "uint32", "bytes32"],
        [1n, sourceEid, pad(adapter), targetEid, pad(oft)],
      ),
    );
    expect(sent?.args).toMatchObject({ guid, dstEid: targetEid, amountReceivedLD: 100n });
    expect(await balanceOf(source, usdt, adapter)).toBe(100n);
    expect(await balanceOf(target, target.token, buyer)).toBe(0n);

    expect(await layerZero.deliver()).toEqual([guid]);

    expect(await balanceOf(target, target.token, buyer)).toBe(100n);
    const received = await target.client.getContractEvents({
      address: oft,
      abi: testOft.abi,
      eventName: "OFTReceived",
      args: { guid },
      fromBlock: 0n,
    });
    expect(received).toMatchObject([{ args: { srcEid: sourceEid, amountReceivedLD: 100n } }]);
    expect(await layerZero.deliver()).toEqual([]);
  });

  it("arrives in the order of its messages, each once", async () => {
    await send({ amount: 1n });
    await send({ amount: 2n });
    await send({ amount: 3n });
    await layerZero.verify();
    expect(await layerZero.deliver()).toHaveLength(3);
    expect(await balanceOf(target, target.token, source.accounts.buyer.address)).toBe(6n);
  });

  it("waits on the target chain while it cannot be executed there, and is retried", async () => {
    await send();
    await setPaused(true);
    expect(await layerZero.deliver()).toEqual([]);
    const alerts = await target.client.getContractEvents({
      address: layerZero.endpoint,
      abi: testEndpoint.abi,
      eventName: "LzReceiveAlert",
      fromBlock: 0n,
    });
    expect(alerts).toHaveLength(1);
    await setPaused(false);
    expect(await layerZero.deliver()).toHaveLength(1);
  });

  it("refunds the payment above the fee", async () => {
    const { address: buyer } = source.accounts.buyer;
    const before = await source.client.getBalance({ address: buyer });
    const { gasUsed, effectiveGasPrice } = await send({ fee: nativeFee * 5n });
    const after = await source.client.getBalance({ address: buyer });
    expect(before - after).toBe(gasUsed * effectiveGasPrice + nativeFee);
  });

  it.each([
    ["SlippageExceeded", { least: 101n }],
    ["LZ_InsufficientFee", { fee: nativeFee - 1n }],
    ["NotEnoughNative", { value: nativeFee + 1n }],
    ["NoPeer", { eid: 30110 }],
  ])("is not sent, with %s, for %o", async (name, change) => {
    expect(await refusalOf(change)).toBe(name);
  });

  it("cannot be minted by any account but the endpoint", async () => {
    const { accounts, client } = target;
    const origin = { srcEid: sourceEid, sender: pad(adapter), nonce: 1n };
    const call = client.simulateContract({
      account: accounts.buyer,
      address: oft,
      abi: testOft.abi,
      functionName: "lzReceive",
      args: [origin, pad("0x01"), "0x", accounts.buyer.address, "0x"],
    });
    await expect(call).rejects.toThrow("OnlyEndpoint");
  });
});

describe("the token with the rules of USDT", () => {
  it("requires an allowance to be reset to zero before a new one", async () => {
    await expect(approve(5n)).rejects.toThrow("reverted");
    await approve(0n);
    expect((await approve(5n)).status).toBe("success");
  });
});
