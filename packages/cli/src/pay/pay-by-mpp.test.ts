import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Devnet, listen, startDevnet } from "@coinslot/devnet";
import {
  chainIdOf,
  challengeNonce,
  encodeChargeRequest,
  evmCharge,
  formatChallenge,
} from "@coinslot/protocol";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { exitCode } from "../exit-code.ts";
import { inFolder, type RunOptions, runCoinslot } from "../testing/run-coinslot.ts";
import { startTestSeller, type TestSeller } from "../testing/test-seller.ts";
import { keptNameOf } from "./search-kept.ts";

let devnet: Devnet;
let seller: TestSeller;

beforeAll(async () => {
  devnet = await startDevnet({ accountCount: 5 });
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
  seller = await startTestSeller({ devnet, ledger: "sqlite::memory:" });
});

afterAll(async () => {
  await seller?.stop();
  await devnet?.stop();
});

function pay(args: readonly string[], options: RunOptions = {}) {
  const env = {
    COINSLOT_NETWORK: devnet.network,
    COINSLOT_RPC_URL: devnet.rpcUrl,
    WALLET_PRIVATE_KEY: devnet.accounts.buyer.privateKey,
  };
  return runCoinslot(["pay", ...args], { ...options, env });
}

/** A seller that repeats one challenge, and answers no payment with success. */
async function startRepeater() {
  const challenge = formatChallenge({
    id: "always-the-same",
    realm: "127.0.0.1",
    ...evmCharge,
    expires: "2099-01-01T00:00:00Z",
    request: encodeChargeRequest({
      amount: "1000",
      currency: devnet.token,
      recipient: devnet.accounts.seller.address,
      description: "Weather\u001b[2J, bright",
      methodDetails: { chainId: chainIdOf(devnet.network), credentialTypes: ["authorization"] },
    }),
  });
  const payments: string[] = [];
  const server = await listen((request, response) => {
    const { authorization } = request.headers;
    if (authorization === undefined) {
      response.writeHead(402, { "WWW-Authenticate": challenge }).end();
    } else {
      payments.push(authorization);
      response.writeHead(500).end();
    }
  });
  onTestFinished(() => server.close());
  return { url: server.url, payments };
}

it("coinslot pay buys by MPP where it is preferred, and by x402 otherwise", async () => {
  for (const [args, protocol] of [
    [["--protocols", "mpp,x402"], "mpp"],
    [[], "x402"],
  ] as const) {
    const { code, out } = await pay([`${seller.url}/weather`, "--yes", "--json", ...args]);
    expect(code).toBe(exitCode.done);
    expect(JSON.parse(out)).toMatchObject({
      status: 200,
      payment: { state: "settled", protocol, terms: { amount: "1000" } },
    });
  }
});

it("coinslot pay --resume fetches an answer by the kept credential", async () => {
  await inFolder(async (folder) => {
    const first = await pay([`${seller.url}/shaky`, "--yes", "--protocols", "mpp"], { folder });
    expect(first.code).toBe(exitCode.unclear);
    const [file = ""] = readdirSync(folder);
    expect(readFileSync(join(folder, file), "utf8")).toContain('"name": "Authorization"');
    const resumed = await pay(["--resume", file], { folder });
    expect(resumed).toMatchObject({
      code: exitCode.done,
      out: expect.stringContaining("it holds"),
    });
    expect(readdirSync(folder)).toEqual([]);
  });
});

it("coinslot pay shows a charge with its control characters escaped, and prompts", async () => {
  const { url, payments } = await startRepeater();
  const { code, err, questions } = await pay([url], { answer: false });
  expect(questions).toEqual(["Pay?"]);
  expect(err).toMatch(/by\s+MPP/);
  expect(err).toContain("Weather [2J, bright");
  expect(err).not.toContain("\u001b");
  expect([code, payments.length]).toEqual([exitCode.usage, 0]);
});

it("coinslot pay signs no second time for a challenge that a kept payment answers, at any URL", async () => {
  const { url, payments } = await startRepeater();
  await inFolder(async (folder) => {
    const first = await pay([`${url}/a`, "--yes"], { folder });
    expect(first.code).toBe(exitCode.unclear);
    const [file = ""] = readdirSync(folder);
    const kept = readFileSync(join(folder, file), "utf8");
    const second = await pay([`${url}/b`, "--yes"], { folder });
    expect(second.code).toBe(exitCode.unclear);
    expect(second.err).toContain("repeats a challenge that a kept payment answers");
    expect(readdirSync(folder)).toEqual([file]);
    expect(readFileSync(join(folder, file), "utf8")).toBe(kept);
    expect(payments).toHaveLength(1);
  });
});

it("coinslot pay leaves what another process is about to keep under the same nonce", async () => {
  const { url } = await startRepeater();
  await inFolder(async (folder) => {
    const nonce = challengeNonce({ id: "always-the-same", realm: "127.0.0.1" });
    const name = keptNameOf({ nonce });
    writeFileSync(join(folder, `${name}.tmp`), "of another process");
    const temporaryFolder = join(folder, "temporary");
    mkdirSync(temporaryFolder);
    expect((await pay([url, "--yes"], { folder, temporaryFolder })).code).toBe(exitCode.unclear);
    expect(readFileSync(join(folder, `${name}.tmp`), "utf8")).toBe("of another process");
    expect(readdirSync(temporaryFolder)).toEqual([name]);
  });
});

it("coinslot pay refuses a list of protocols that it does not know", async () => {
  const { code, err } = await pay([seller.url, "--protocols", "cash"]);
  expect(code).toBe(exitCode.usage);
  expect(err).toContain("expected x402, mpp, or both");
});
