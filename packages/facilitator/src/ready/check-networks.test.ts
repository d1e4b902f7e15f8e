import {
  type BlockWatcher,
  createBlockWatcher,
  createRpcPool,
  type RpcPool,
  systemClock,
} from "@coinslot/chain";
import { type Devnet, devSeedPhrase, startDevnet } from "@coinslot/devnet";
import { type Asset, ConfigurationError } from "@coinslot/protocol";
import { mnemonicToAccount } from "viem/accounts";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import {
  type NetworkConfiguration,
  readFacilitatorOptions,
} from "../configuration/facilitator-configuration.ts";
import type { FacilitatorNetworkOptions } from "../configuration/facilitator-options.ts";
import { silentLogger } from "../logger.ts";
import { type Intercept, startNodeProxy } from "../testing/node-proxy.ts";
import { checkNetworks } from "./check-networks.ts";

let devnet: Devnet;
let otherChain: Devnet;
beforeAll(async () => {
  [devnet, otherChain] = await Promise.all([
    startDevnet(),
    startDevnet({ chainId: 988, accountCount: 4 }),
  ]);
});
afterAll(async () => {
  await Promise.all([devnet.stop(), otherChain.stop()]);
});

const pools: RpcPool[] = [];
afterEach(() => {
  for (const pool of pools.splice(0)) pool.close();
});

function configure(change: Partial<FacilitatorNetworkOptions> = {}): {
  configuration: NetworkConfiguration;
  pool: RpcPool;
  watcher: BlockWatcher;
} {
  const { network, rpcUrl, accounts } = devnet;
  const { privateKey } = accounts.relayer;
  const { networks } = readFacilitatorOptions({
    networks: [{ network, rpcUrls: [rpcUrl], relayer: { privateKey }, ...change }],
    ledger: "sqlite::memory:",
  });
  const [configuration] = networks;
  const { chainId, rpcUrls } = configuration;
  const pool = createRpcPool({ chainId, rpcUrls, patienceMs: 100 });
  pools.push(pool);
  return { configuration, pool, watcher: createBlockWatcher({ pool }) };
}

/** The report of a start with these networks: problems, and warnings in the log. */
async function check(...changes: Partial<FacilitatorNetworkOptions>[]) {
  return checkFor(0, ...changes);
}

/** As `check`, with retries. */
async function checkFor(patienceMs: number, ...changes: Partial<FacilitatorNetworkOptions>[]) {
  const warnings: string[] = [];
  const logger = {
    ...silentLogger,
    warn: (_: object, message: string) => void warnings.push(message),
  };
  try {
    const networks = changes.map(configure);
    const reports = await checkNetworks({
      networks,
      escrows: [],
      logger,
      clock: systemClock,
      patienceMs,
    });
    return { problems: [], warnings, reports };
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return { problems: error.problems, warnings };
  }
}

const usdt0 = (change: Partial<Asset> = {}): Asset => ({
  address: devnet.token,
  name: "USDT0",
  version: "1",
  decimals: 6,
  ...change,
});

test("a correct network has no problem, and its Multicall3 is found", async () => {
  const { problems, warnings, reports } = await check({});
  expect({ problems, warnings }).toEqual({ problems: [], warnings: [] });
  expect(reports?.get(devnet.network)?.hasMulticall3).toBe(true);
});

test("an endpoint of another chain is named by its position, never by its URL", async () => {
  const { problems } = await check({ rpcUrls: [otherChain.rpcUrl] });
  expect(problems).toHaveLength(1);
  expect(problems[0]).toMatch(/endpoint 1 of 1 serves chain 988 instead of chain 9745; remove it/);
  expect(problems[0]).not.toContain(otherChain.rpcUrl);
});

test.each([1, 2])(
  "%d endpoints of another chain are no problem beside a right one",
  async (count) => {
    const others = Array.from({ length: count }, () => otherChain.rpcUrl);
    const { problems } = await check({ rpcUrls: [...others, devnet.rpcUrl] });
    expect(problems).toEqual([]);
  },
);

test("an unreachable chain is a problem, and one failing endpoint of several is not", async () => {
  const closedPort = "http://127.0.0.1:1";
  const { problems } = await check({ rpcUrls: [closedPort] });
  expect(problems).toEqual([expect.stringMatching(/check its URL/)]);
  expect((await check({ rpcUrls: [closedPort, devnet.rpcUrl] })).problems).toEqual([]);
});

test("a domain is compared with the token's own, and the mismatch names its member", async () => {
  const name = await check({ assets: [usdt0({ name: "USDT" })] });
  expect(name.problems).toEqual([
    expect.stringContaining('signs under the name "USDT0", not "USDT": correct its name'),
  ]);
  const version = await check({ assets: [usdt0({ version: "2" })] });
  expect(version.problems).toEqual([
    expect.stringContaining('signs under the version "1", not "2": correct its version'),
  ]);
  const both = await check({ assets: [usdt0({ name: "USDT", version: "2" })] });
  expect(both.problems).toHaveLength(2);
});

test("a token whose separator fits none of its names is a problem of its own", async () => {
  const address = await devnet.deployMisbehavingToken("wrongDomainSeparator");
  const { problems } = await check({ assets: [usdt0({ address })] });
  expect(problems).toEqual([expect.stringContaining("does not return its own: ask its issuer")]);
});

test("an asset without a contract, or without EIP-3009, is a problem", async () => {
  const nowhere = `0x${"ab".repeat(20)}` as const;
  const { problems } = await check({ assets: [nowhere, devnet.multicall3] });
  expect(problems).toEqual([
    expect.stringContaining(
      `The token ${nowhere} has no contract at its address on ${devnet.network}`,
    ),
    expect.stringContaining("has no EIP-3009 transfers"),
  ]);
});

test("a relayer without gas money is reported with its address and its need", async () => {
  const relayer = { privateKey: `0x${"77".repeat(32)}` };
  const { problems } = await check({ relayer });
  expect(problems).toEqual([
    expect.stringMatching(
      /^The relayer 0x\w{40} holds 0 XPL on eip155:9745, and needs at least 0.001 XPL/,
    ),
  ]);
});

test("one funded relayer address of several suffices, with a warning about the others", async () => {
  const relayer = { seedPhrase: devSeedPhrase, accountIndex: 500, addressCount: 2 };
  const { address } = mnemonicToAccount(devSeedPhrase, { addressIndex: 501 });
  await devnet.client.setBalance({ address, value: 10n ** 18n });
  const { problems, warnings } = await check({ relayer });
  expect(problems).toEqual([]);
  expect(warnings).toEqual([expect.stringContaining("holds 0 XPL")]);
});

test("a low relayer balance is a warning before it is a problem", async () => {
  const { problems, warnings } = await check({ warningBalance: 10n ** 24n });
  expect(problems).toEqual([]);
  expect(warnings).toEqual([expect.stringMatching(/holds only 10000 XPL .* send it some soon/)]);
});

test("a chain without Multicall3 is served, with a warning", async () => {
  const code = await devnet.client.getCode({ address: devnet.multicall3 });
  await devnet.client.setCode({ address: devnet.multicall3, bytecode: "0x" });
  const { problems, warnings, reports } = await check({});
  await devnet.client.setCode({ address: devnet.multicall3, bytecode: code ?? "0x" });
  expect(problems).toEqual([]);
  expect(warnings).toEqual([expect.stringContaining("has no Multicall3")]);
  expect(reports?.get(devnet.network)?.hasMulticall3).toBe(false);
});

test("the network's default token is checked unasked, with a warning", async () => {
  const code = await devnet.client.getCode({ address: devnet.token });
  await devnet.client.setCode({ address: devnet.token, bytecode: "0x" });
  const { problems, warnings } = await check({});
  await devnet.client.setCode({ address: devnet.token, bytecode: code ?? "0x" });
  expect(problems).toEqual([]);
  expect(warnings).toEqual([expect.stringContaining("has no contract at its address")]);
});

test("all problems of all networks are reported at once", async () => {
  const poor = { privateKey: `0x${"77".repeat(32)}` };
  const { problems } = await check(
    { relayer: poor, assets: [usdt0({ name: "USDT", version: "2" })] },
    { network: "eip155:988", rpcUrls: [otherChain.rpcUrl], relayer: poor },
  );
  expect(problems).toHaveLength(4);
});

/** A node in front of the true one. */
async function startNode(intercept: Intercept): Promise<string> {
  const proxy = await startNodeProxy(devnet.rpcUrl, intercept);
  onTestFinished(() => proxy.close());
  return proxy.url;
}

const lies: {
  title: string;
  method: string;
  answer: Awaited<ReturnType<Intercept>>;
  problem: string;
}[] = [
  {
    title: "shows no balance of the relayer",
    method: "eth_getBalance",
    answer: { result: "0x0" },
    problem: "holds 0 XPL",
  },
  {
    title: "reverts each call",
    method: "eth_call",
    answer: { error: { code: 3, message: "execution reverted", data: "0x" } },
    problem: "has no EIP-3009 transfers",
  },
  {
    title: "returns nothing for each call",
    method: "eth_call",
    answer: { result: "0x" },
    problem: "has no EIP-3009 transfers",
  },
  {
    title: "returns nonsense for each call",
    method: "eth_call",
    answer: { result: `0x${"12".repeat(32)}` },
    problem: "has no EIP-3009 transfers",
  },
  {
    title: "shows no code",
    method: "eth_getCode",
    answer: { result: "0x" },
    problem: "has no contract at its address",
  },
];

describe.each(lies)("an endpoint that $title", ({ method, answer, problem }) => {
  const startLiar = () => startNode(async (call, ask) => (call.method === method ? answer : ask()));

  test("is a warning with its number beside one that contradicts it", async () => {
    const rpcUrls = [await startLiar(), devnet.rpcUrl];
    const { problems, warnings } = await check({ rpcUrls, assets: [usdt0()] });
    expect(problems).toEqual([]);
    expect(warnings).toContainEqual(
      expect.stringMatching(`^By endpoint 1, which another one contradicts: .*${problem}`),
    );
  });

  test("is believed alone, and beside one that does not answer", async () => {
    const liar = await startLiar();
    for (const rpcUrls of [[liar], [liar, "http://127.0.0.1:1"]]) {
      const { problems } = await check({ rpcUrls, assets: [usdt0()] });
      expect(problems).toEqual([expect.stringContaining(problem)]);
    }
  });

  test("is a warning beside one that answers before the deadline", async () => {
    let isSilent = true;
    const late = await startNode(async (call, ask) => {
      if (call.method !== method || !isSilent) return ask();
      isSilent = false;
      return undefined;
    });
    const change = { rpcUrls: [await startLiar(), late], assets: [usdt0()] };
    const { problems } = await checkFor(10_000, change);
    expect(problems).toEqual([]);
    expect(isSilent).toBe(false);
  });
});

test("a problem that each endpoint shows ends the retries, without those of one alone", async () => {
  const liar = await startNode(async ({ method }, ask) =>
    method === "eth_getCode" ? { result: "0x" } : ask(),
  );
  const { problems } = await checkFor(60_000, {
    rpcUrls: [liar, devnet.rpcUrl],
    assets: [usdt0(), devnet.multicall3],
  });
  expect(problems).toEqual([
    expect.stringMatching(/^The token 0xca11bde0\w+ has no EIP-3009 transfers/i),
  ]);
});
