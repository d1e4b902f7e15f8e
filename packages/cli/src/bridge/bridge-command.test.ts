import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { usdt0Chains } from "@coinslot/bridge";
import {
  type Devnet,
  type LayerZero,
  startDevnet,
  startLayerZero,
  testOft,
} from "@coinslot/devnet";
import { type Address, encodeFunctionData, erc20Abi, pad, parseAbi } from "viem";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { exitCode } from "../exit-code.ts";
import { runCli } from "../run-cli.ts";

const usdt: Address = "0xdAC17F958D2ee523a2206206994597C13D831ec7";
const usdt0: Address = "0xB8CE59FC3717ada4C02eaDF9682A9e934F625ebb";

let ethereum: Devnet;
let plasma: Devnet;
let layerZero: LayerZero;

beforeAll(async () => {
  [ethereum, plasma] = await Promise.all([
    startDevnet({ chainId: 1 }),
    startDevnet({ chainId: 9745 }),
  ]);
  layerZero = await startLayerZero({
    chains: [
      { devnet: ethereum, eid: 30101 },
      { devnet: plasma, eid: 30383 },
    ],
  });
  await layerZero.connect([
    { devnet: ethereum, oft: oftOf("ethereum"), token: usdt, locks: true },
    { devnet: plasma, oft: oftOf("plasma"), token: usdt0, locks: false },
  ]);
  const to = ethereum.accounts.buyer.address;
  await ethereum.mint({ token: usdt, to, amount: 100_000_000n });
});

afterAll(() => Promise.all([ethereum?.stop(), plasma?.stop()]));

function oftOf(key: string): Address {
  const chain = usdt0Chains.find((each) => each.key === key);
  const oft = chain?.type === "evm" ? chain.contracts.oft : undefined;
  if (oft === undefined) throw new Error(`The table has no OFT on ${key}`);
  return oft;
}

/** Runs the command in this process, and returns its output and exit code. */
async function coinslot(
  args: readonly string[],
  change: {
    env?: Record<string, string>;
    answer?: boolean;
    /** Interrupts the command after this output. */
    interruptAt?: string;
  } = {},
) {
  const { env = {}, answer, interruptAt } = change;
  const interrupted = new AbortController();
  const printed = { out: "", err: "" };
  const code = await runCli(["bridge", ...args], {
    out: (text) => {
      printed.out += `${text}\n`;
    },
    err: (text) => {
      printed.err += `${text}\n`;
      if (interruptAt !== undefined && text.includes(interruptAt)) interrupted.abort();
    },
    confirm: answer === undefined ? undefined : async () => answer,
    isColourful: false,
    env,
    signal: interrupted.signal,
  });
  return { code, ...printed };
}

function transfer(...more: string[]): string[] {
  const request = ["--to", "plasma", "--token", usdt, "--amount", "5"];
  return ["--rpc-url", ethereum.rpcUrl, ...request, ...more];
}

function balanceOf(devnet: Devnet, token: Address, account: Address): Promise<bigint> {
  const read = { abi: erc20Abi, functionName: "balanceOf", args: [account] } as const;
  return devnet.client.readContract({ address: token, ...read });
}

describe("coinslot bridge quote", () => {
  it("prints the costs of a transfer, without a key", async () => {
    const account = ethereum.accounts.buyer.address;
    const { code, out } = await coinslot(["quote", ...transfer("--account", account)]);
    expect(code).toBe(exitCode.done);
    expect(out).toMatch(/arrives +at least 5 on plasma/);
    expect(out).toMatch(/send +5 from Ethereum/);
    expect(out).toMatch(/bridge fee +0\.0001 ETH/);
    expect(out).toMatch(/in all +0\.000[1-9]\d* ETH at most/);
  });

  it("prints JSON with amounts as decimal strings", async () => {
    const account = ethereum.accounts.buyer.address;
    const { out } = await coinslot(["quote", ...transfer("--account", account, "--json")]);
    expect(JSON.parse(out)).toMatchObject({
      bridgeFee: "100000000000000",
      amountReceived: "5000000",
    });
  });

  it("requires an account when none is configured", async () => {
    const { code, err } = await coinslot(["quote", ...transfer()]);
    expect(code).toBe(exitCode.usage);
    expect(err).toContain("Give --account");
  });

  it("reports an unreadable amount, and a missing option", async () => {
    const wrong = await coinslot(["quote", ...transfer("--amount", "1e3")]);
    expect(wrong).toMatchObject({ code: exitCode.usage });
    expect(wrong.err).toContain("expected a number");
    const missing = await coinslot(["quote", "--rpc-url", ethereum.rpcUrl]);
    expect(missing).toMatchObject({ code: exitCode.usage });
    expect(missing.err).toContain("--to <chain>");
  });
});

describe("coinslot bridge send", () => {
  const wallet = () => ({ WALLET_PRIVATE_KEY: ethereum.accounts.buyer.privateKey });
  const maxFee = ["--max-bridge-fee", "0.0001", "--max-total-fee", "1"];

  it("sends nothing when the answer is no, or no terminal is there to prompt", async () => {
    for (const answer of [false, undefined]) {
      const change = { env: wallet(), ...(answer === undefined ? {} : { answer }) };
      const { code } = await coinslot(["send", ...transfer(...maxFee)], change);
      expect(code).toBe(exitCode.usage);
    }
    const buyer = ethereum.accounts.buyer.address;
    expect(await balanceOf(ethereum, usdt, buyer)).toBe(100_000_000n);
  });

  it("refuses a fee above the maximum before any signature", async () => {
    const fees = ["--max-bridge-fee", "0.00009", "--max-total-fee", "1"];
    const args = ["send", ...transfer(...fees, "--yes")];
    const { code, err } = await coinslot(args, { env: wallet() });
    expect(code).toBe(exitCode.failed);
    expect(err).toContain("fee");
    const { address } = ethereum.accounts.buyer;
    expect(await ethereum.client.getTransactionCount({ address })).toBe(0);
  });

  it.each([
    { interruptAt: "through", transactions: 0 },
    { interruptAt: "approving", transactions: 1 },
  ])("sends no token after an interruption at $interruptAt", async (where) => {
    const { address } = ethereum.accounts.buyer;
    const { interruptAt, transactions } = where;
    const countSent = () => ethereum.client.getTransactionCount({ address });
    const before = await countSent();
    const args = ["send", ...transfer(...maxFee, "--yes")];
    const { code } = await coinslot(args, { env: wallet(), interruptAt });
    expect(code).toBe(exitCode.interrupted);
    // A node mines a transaction a moment after it has accepted it.
    await expect.poll(countSent).toBe(before + transactions);
    expect(await balanceOf(ethereum, usdt, address)).toBe(100_000_000n);
  });

  it("sends with a key in a file, and track reports its arrival from any machine", async () => {
    const folder = await mkdtemp(join(tmpdir(), "coinslot-cli-"));
    try {
      const file = join(folder, "key");
      await writeFile(file, `${ethereum.accounts.buyer.privateKey}\n`);
      const recipient = plasma.accounts.seller.address;
      const args = ["send", ...transfer(...maxFee, "--recipient", recipient)];
      const env = { WALLET_PRIVATE_KEY_FILE: file };
      const sent = await coinslot(args, { env, answer: true });
      expect(sent.code).toBe(exitCode.done);
      const hash = sent.out.trim();
      expect(sent.err).toContain(`coinslot bridge track ${hash} --to plasma`);
      expect(sent.err).not.toContain(ethereum.accounts.buyer.privateKey);

      const where = ["--rpc-url", ethereum.rpcUrl, "--to", "plasma"];
      const track = ["track", hash, ...where, "--target-rpc-url", plasma.rpcUrl];
      const early = await coinslot([...track, "--timeout", "0.1"]);
      expect(early.code).toBe(exitCode.unclear);
      expect(early.err).toContain("LayerZero message");

      await layerZero.deliver();
      await plasma.mine(64);
      const late = await coinslot([...track, "--json"]);
      expect(late.code).toBe(exitCode.done);
      expect(JSON.parse(late.out)).toMatchObject({ state: "delivered", amountReceived: "5000000" });
      expect(await balanceOf(plasma, usdt0, recipient)).toBe(5_000_000n);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});

describe("coinslot bridge, used wrongly", () => {
  const wallet = () => ({ WALLET_PRIVATE_KEY: ethereum.accounts.buyer.privateKey });
  const fees = ["--max-bridge-fee", "0.0001", "--max-total-fee", "1", "--yes"];

  it.each([
    ["--to", "nowhere"],
    ["--to", "ethereum"],
    ["--token", "USDT"],
    ["--token", usdt0],
    ["--recipient", "0x1234"],
    ["--oft", "0x1234"],
    ["--oft", usdt],
    ["--decimals", "18"],
    ["--decimals", "many"],
    ["--amount", "0"],
    ["--amount", "0.0000001"],
    ["--amount", "-5"],
    ["--rpc-url", "ftp://127.0.0.1"],
    ["--target-rpc-url", "ftp://127.0.0.1"],
  ])("ends with an error and exit code 2 for %s %s", async (option, value) => {
    const ran = await coinslot(["send", ...transfer(...fees, option, value)], { env: wallet() });
    expect(ran).toMatchObject({ code: exitCode.usage, out: "" });
    expect(ran.err).not.toBe("");
  });

  it("names the command that lists the chains for an unknown one", async () => {
    const ran = await coinslot(["send", ...transfer(...fees, "--to", "Plasma")], { env: wallet() });
    expect(ran.err).toContain(`Unknown chain "Plasma": "coinslot bridge chains" lists them`);
  });

  it("asks for a recipient where the wallet has no address", async () => {
    const ran = await coinslot(["send", ...transfer(...fees, "--to", "solana")], { env: wallet() });
    expect(ran.code).toBe(exitCode.usage);
    expect(ran.err).toContain("The wallet has no address on Solana: give --recipient");
  });

  it("ends with an error for an RPC URL of a target outside the EVM", async () => {
    const tron = ["--to", "tron", "--recipient", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"];
    const url = ["--target-rpc-url", plasma.rpcUrl];
    const ran = await coinslot(["send", ...transfer(...fees, ...tron, ...url)], { env: wallet() });
    expect(ran.code).toBe(exitCode.usage);
    expect(ran.err).toContain("targetRpcUrls.tron");
  });
});

describe("an interrupted or unclear coinslot bridge send", () => {
  const wallet = () => ({ WALLET_PRIVATE_KEY: ethereum.accounts.buyer.privateKey });
  const fees = ["--max-bridge-fee", "0.0001", "--max-total-fee", "1", "--yes"];

  it("prints how to continue once the tokens have left", async () => {
    const args = ["send", ...transfer(...fees, "--target-rpc-url", plasma.rpcUrl)];
    const { code, err } = await coinslot(args, { env: wallet(), interruptAt: "on the way to" });
    expect(code).toBe(exitCode.unclear);
    expect(err).toMatch(/coinslot bridge track 0x[0-9a-f]{64} --to plasma/);
  });

  it("reports the outcome as unclear, despite the interruption", async () => {
    const { client } = ethereum;
    const address = oftOf("ethereum");
    const hash = await client.writeContract({
      account: ethereum.accounts.buyer,
      address: usdt,
      abi: parseAbi(["function approve(address spender, uint256 value)"]),
      functionName: "approve",
      args: [address, 5_000_000n],
    });
    await client.waitForTransactionReceipt({ hash });
    await ethereum.setAutomine(false);
    const code = await client.getCode({ address });
    try {
      const args = ["send", ...transfer(...fees)];
      const running = coinslot(args, { env: wallet(), interruptAt: "sending" });
      await vi.waitFor(
        async () => expect((await client.getTxpoolStatus()).pending).toBe(1),
        20_000,
      );
      // It is mined, without an OFTSent event.
      await client.setCode({ address, bytecode: "0x00" });
      await ethereum.mine();
      const ran = await running;
      expect(ran.code).toBe(exitCode.unclear);
      expect(ran.err).toContain("emitted no event for it");
    } finally {
      await client.setCode({ address, bytecode: code ?? "0x" });
      await ethereum.setAutomine(true);
    }
  });
});

describe("coinslot bridge send to a chain outside the EVM", () => {
  const legacyMesh = () => {
    const chain = usdt0Chains.find(({ key }) => key === "ethereum");
    const contract = chain?.type === "evm" ? chain.contracts.legacyMesh : undefined;
    if (contract === undefined) throw new Error("The table has no legacy mesh on Ethereum");
    return contract;
  };

  it("ignores the target URL of the environment, and prints where to look", async () => {
    const oft = legacyMesh();
    await layerZero.connect([{ devnet: ethereum, oft, token: usdt, locks: true }]);
    const { abi } = testOft;
    const peer = [30420, pad("0x01")] as const;
    const data = encodeFunctionData({ abi, functionName: "setPeer", args: peer });
    await ethereum.send({ to: oft, data });
    vi.stubEnv("BRIDGE_TARGET_RPC_URL", plasma.rpcUrl);
    try {
      const recipient = ["--recipient", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"];
      const fees = ["--max-bridge-fee", "0.0001", "--max-total-fee", "1", "--yes"];
      const args = ["send", ...transfer("--to", "tron", ...recipient, ...fees)];
      const env = { WALLET_PRIVATE_KEY: ethereum.accounts.buyer.privateKey };
      const { code, err } = await coinslot(args, { env });
      expect(code).toBe(exitCode.done);
      expect(err).toMatch(/message 0x[0-9a-f]{64}: https:\/\/layerzeroscan\.com\/tx\/0x/);
    } finally {
      vi.unstubAllEnvs();
    }
  });
});

describe("coinslot bridge with a custom contract", () => {
  it("reads the amount with the given decimals, which the chain confirms", async () => {
    const oft = "0x00000000000000000000000000000000000f0000";
    const token = await ethereum.deployToken({ decimals: 18 });
    await layerZero.adapt({ devnet: ethereum, token, oft, peerEid: 30383 });
    const account = ["--account", ethereum.accounts.buyer.address];
    const unsaid = ["--token", token, "--oft", oft, ...account];
    const asked = await coinslot(["quote", ...transfer(...unsaid)]);
    expect(asked.code).toBe(exitCode.usage);
    expect(asked.err).toContain(`The RPC endpoint returns 18 for ${token}`);
    const wrong = await coinslot(["quote", ...transfer(...unsaid, "--decimals", "6")]);
    expect(wrong.err).toContain("by its contract, the token has 18");
    const through = [...unsaid, "--decimals", "18"];
    const { code, out } = await coinslot(["quote", ...transfer(...through, "--json")]);
    expect(code).toBe(exitCode.done);
    expect(JSON.parse(out)).toMatchObject({ amountSent: "5000000000000000000" });
    const shown = await coinslot(["quote", ...transfer(...through)]);
    expect(shown.out).toMatch(/arrives +at least 5 on plasma/);
  });
});

describe("coinslot bridge chains", () => {
  it("lists the table, with chains outside the EVM as targets", async () => {
    const { code, out } = await coinslot(["chains"]);
    expect(code).toBe(exitCode.done);
    expect(out).toMatch(/^plasma +Plasma +9745/m);
    expect(out).toMatch(/^solana .*target only$/m);
  });

  it("checks a row of the table against its chain, and reports differences", async () => {
    const { code, out } = await coinslot(["chains", "--check", "--rpc-url", plasma.rpcUrl]);
    expect(code).toBe(exitCode.failed);
    expect(out).toContain(oftOf("plasma"));
    expect(out).toContain("its peer on arbitrum is");
  });

  it("needs an RPC URL for a check", async () => {
    const { code, err } = await coinslot(["chains", "--check"]);
    expect(code).toBe(exitCode.usage);
    expect(err).toContain("--rpc-url");
  });
});

describe("coinslot", () => {
  it("never repeats an unreadable key", async () => {
    const args = ["send", ...transfer("--max-bridge-fee", "1", "--max-total-fee", "1", "--yes")];
    const { code, err } = await coinslot(args, { env: { WALLET_PRIVATE_KEY: "0xsecret" } });
    expect(code).toBe(exitCode.usage);
    expect(err).not.toContain("secret");
  });
});
