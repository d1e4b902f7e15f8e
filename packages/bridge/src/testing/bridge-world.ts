import {
  type Devnet,
  type LayerZero,
  startDevnet,
  startLayerZero,
  testOft,
  testTether,
} from "@coinslot/devnet";
import { type Address, encodeFunctionData, erc20Abi, type Hex } from "viem";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import type { ContractKind } from "../chains/bridge-chain.ts";
import { usdt0Chains } from "../chains/usdt0-chains.ts";
import {
  type Bridge,
  type BridgeOptions,
  type BridgeRequest,
  createBridge,
  type SourceOptions,
} from "../index.ts";

export const usdt: Address = "0xdAC17F958D2ee523a2206206994597C13D831ec7";
export const xaut: Address = "0x68749665FF8D2d112Fa859AA293F07A622782F38";
export const usdt0: Address = "0xB8CE59FC3717ada4C02eaDF9682A9e934F625ebb";
/** The buyer's balance on Ethereum at the start of each test. */
export const funds = 1_000_000_000n;
/** The fee of a message at the start of each test. */
export const nativeFee = 100_000_000_000_000n;

/** More than any transfer of a test costs: one ether. */
const maxTotalFee = 10n ** 18n;

/** The contract that the table has. */
export function contractOf(key: string, kind: ContractKind): Address {
  const chain = usdt0Chains.find((each) => each.key === key);
  const contract = chain?.type === "evm" ? chain.contracts[kind] : undefined;
  if (contract === undefined) throw new Error(`The table has no ${kind} on ${key}`);
  return contract;
}

type BridgeChange = Partial<Omit<BridgeOptions, "rpcUrl" | "client">>;

/** Ethereum and Plasma in miniature, with tokens and contracts at the chain table's addresses. */
export interface BridgeWorld {
  ethereum: Devnet;
  plasma: Devnet;
  layerZero: LayerZero;
  buyer: Address;
  /** Five USDT from the buyer on Ethereum to the buyer on Plasma. */
  request: BridgeRequest;
  /** Ethereum by two hosts, which are one node by two names. */
  twoHosts: string[];
  /** A bridge of the buyer, from Ethereum. It is closed after the test. */
  createBridge: (change?: BridgeChange, source?: SourceOptions) => Bridge;
  /** Changes how an OFT behaves. */
  configure: (devnet: Devnet, oft: Address, call: OftCall) => Promise<void>;
  balanceOf: (devnet: Devnet, token: Address, owner: Address) => Promise<bigint>;
  /** The USDT0 adapter's allowance from the buyer. */
  allowance: () => Promise<bigint>;
  approve: (value: bigint) => Promise<void>;
  /** Number of transactions that the buyer has sent on Ethereum. */
  countSent: () => Promise<number>;
}

type OftCall =
  | { functionName: "setFeeBps"; args: readonly [bigint] }
  | { functionName: "setLimit"; args: readonly [bigint, bigint] }
  | { functionName: "setPaused"; args: readonly [boolean] }
  | { functionName: "setEnforcedOptions"; args: readonly [Hex] };

/**
 * Registers the hooks for a test file that bridges. A test's changes to the chains are undone after
 * it.
 *
 * @returns the world, to be called within tests
 */
export function useBridgeWorld(): () => BridgeWorld {
  let world: BridgeWorld | undefined;
  const bridges: Bridge[] = [];
  let snapshots: readonly { devnet: Devnet; id: Hex }[] = [];

  beforeAll(async () => {
    const [ethereum, plasma] = await Promise.all([
      startDevnet({ chainId: 1 }),
      startDevnet({ chainId: 9745 }),
    ]);
    const layerZero = await connect(ethereum, plasma);
    const buyer = ethereum.accounts.buyer.address;
    await ethereum.mint({ token: usdt, to: buyer, amount: funds });
    world = createWorld({ ethereum, plasma, layerZero, bridges });
  });
  afterAll(() => Promise.all([world?.ethereum.stop(), world?.plasma.stop()]));
  beforeEach(async () => {
    const devnets = world ? [world.ethereum, world.plasma] : [];
    snapshots = await Promise.all(
      devnets.map(async (devnet) => ({ devnet, id: await devnet.snapshot() })),
    );
  });
  afterEach(async () => {
    for (const bridge of bridges.splice(0)) bridge.close();
    for (const { devnet, id } of snapshots) await devnet.revert(id);
  });

  return () => {
    if (world === undefined) throw new Error("The world is there only while tests run");
    return world;
  };
}

async function connect(ethereum: Devnet, plasma: Devnet): Promise<LayerZero> {
  const layerZero = await startLayerZero({
    nativeFee,
    chains: [
      { devnet: ethereum, eid: 30101 },
      { devnet: plasma, eid: 30383 },
    ],
  });
  await layerZero.connect([
    { devnet: ethereum, oft: contractOf("ethereum", "oft"), token: usdt, locks: true },
    { devnet: plasma, oft: contractOf("plasma", "oft"), token: usdt0, locks: false },
  ]);
  await layerZero.connect([
    { devnet: ethereum, oft: contractOf("ethereum", "legacyMesh"), token: usdt, locks: true },
  ]);
  await layerZero.connect([
    { devnet: ethereum, oft: contractOf("ethereum", "xautOft"), token: xaut, locks: true },
  ]);
  return layerZero;
}

function createWorld(parts: {
  ethereum: Devnet;
  plasma: Devnet;
  layerZero: LayerZero;
  bridges: Bridge[];
}): BridgeWorld {
  const { ethereum, plasma, layerZero, bridges } = parts;
  const { buyer } = ethereum.accounts;
  const adapter = contractOf("ethereum", "oft");
  return {
    ethereum,
    plasma,
    layerZero,
    buyer: buyer.address,
    request: {
      targetChain: "plasma",
      recipient: buyer.address,
      token: usdt,
      amount: 5_000_000n,
    },
    twoHosts: [ethereum.rpcUrl, ethereum.rpcUrl.replace("127.0.0.1", "localhost")],
    createBridge(change, source = { rpcUrl: ethereum.rpcUrl }) {
      const bridge = createBridge({
        account: buyer,
        bridgeMaxFee: nativeFee,
        maxTotalFee,
        targetRpcUrls: { plasma: plasma.rpcUrl },
        ...change,
        ...source,
      });
      bridges.push(bridge);
      return bridge;
    },
    async configure(devnet, to, call) {
      await devnet.send({ to, data: encodeFunctionData({ abi: testOft.abi, ...call }) });
    },
    balanceOf: (devnet, address, owner) =>
      devnet.client.readContract({
        address,
        abi: erc20Abi,
        functionName: "balanceOf",
        args: [owner],
      }),
    allowance: () =>
      ethereum.client.readContract({
        address: usdt,
        abi: testTether.abi,
        functionName: "allowance",
        args: [buyer.address, adapter],
      }),
    async approve(value) {
      const hash = await ethereum.client.writeContract({
        account: buyer,
        address: usdt,
        abi: testTether.abi,
        functionName: "approve",
        args: [adapter, value],
      });
      await ethereum.client.waitForTransactionReceipt({ hash });
    },
    countSent: () => ethereum.client.getTransactionCount({ address: buyer.address }),
  };
}
