import { json } from "node:stream/consumers";
import { type Devnet, listen, startDevnet } from "@coinslot/devnet";
import { decodePaymentV2, eip3009Abi, encodeReceipt, headerName } from "@coinslot/protocol";
import { encodeFunctionData } from "viem";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { exitCode } from "../exit-code.ts";
import { startHostileSeller } from "../testing/hostile-seller.ts";
import { type Ran, type RunOptions, runCoinslot } from "../testing/run-coinslot.ts";
import { startTestSeller, type TestSeller } from "../testing/test-seller.ts";

let devnet: Devnet;
let seller: TestSeller;
const opened: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  devnet = await startDevnet();
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 100_000_000n });
  seller = await startTestSeller({ devnet, ledger: "sqlite::memory:" });
});

afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
});

afterAll(async () => {
  await seller?.stop();
  await devnet?.stop();
});

function opening<Server extends { close(): Promise<void> }>(server: Server): Server {
  opened.push(server);
  return server;
}

function verify(url: string, args: string[] = [], options: RunOptions = {}): Promise<Ran> {
  const { network, rpcUrl, accounts } = devnet;
  const env = {
    COINSLOT_NETWORK: network,
    COINSLOT_RPC_URL: rpcUrl,
    WALLET_PRIVATE_KEY: accounts.buyer.privateKey,
  };
  return runCoinslot(["verify", url, ...args], { env, ...options });
}

/** The status of each check, by `name` or `name protocol`. */
function statusesOf({ out }: Ran): Record<string, string> {
  const rows: { check: string; protocol?: string; status: string }[] = JSON.parse(out).findings;
  return Object.fromEntries(
    rows.map(({ check, protocol, status }) => [[check, protocol].join(" ").trim(), status]),
  );
}

/** The call that executes a payment of version 2. */
function executionOf(payment: string): `0x${string}` {
  const { authorization, signature } = decodePaymentV2(payment).payload;
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const numbers = [BigInt(value), BigInt(validAfter), BigInt(validBefore)] as const;
  const args = [from, to, ...numbers, nonce, signature] as const;
  const functionName = "transferWithAuthorization";
  return encodeFunctionData({ abi: eip3009Abi, functionName, args });
}

async function balanceOf(account: `0x${string}`): Promise<bigint> {
  const read = { address: devnet.token, abi: eip3009Abi, functionName: "balanceOf" } as const;
  return devnet.client.readContract({ ...read, args: [account] });
}

describe("the host of coinslot verify", () => {
  it.each([
    ["https://api.example.com/weather", []],
    ["https://api.example.com/weather", ["--i-own", "example.com"]],
    ["https://api.example.com:8443/weather", ["--i-own", "api.example.com"]],
    ["https://127.0.0.1.example.com/weather", ["--i-own", "127.0.0.1"]],
    ["https://localhost.example.com/weather", []],
  ])("is refused where it is another machine's: %s %j", async (url, args) => {
    const { code, err } = await verify(url, args);
    expect(err).toContain(`--i-own ${new URL(url).host}`);
    expect(code).toBe(exitCode.usage);
  });

  it("is not asked over plain HTTP, also where it is the person's own", async () => {
    const { code, err } = await verify("http://api.example.com/a", ["--i-own", "api.example.com"]);
    expect(err).toContain("--allow-insecure-http");
    expect(code).toBe(exitCode.usage);
  });

  it("stays the same for --other and --failing", async () => {
    for (const option of ["--other", "--failing"]) {
      const { code, err } = await verify("http://127.0.0.1:1/a", [option, "//example.com/b"]);
      expect(err).toContain(`${option} must be a path of the same host`);
      expect(code).toBe(exitCode.usage);
    }
  });

  it("is the only one asked: no redirect is followed", async () => {
    let requests = 0;
    const elsewhere = opening(
      await listen((_request, response) => {
        requests += 1;
        response.end();
      }),
    );
    const target = opening(
      await listen((_request, response) => {
        response.writeHead(307, { location: elsewhere.url }).end();
      }),
    );
    const { code, err } = await verify(`${target.url}/weather`);
    expect(err).toContain("307, and redirects are not followed");
    expect([code, requests]).toEqual([exitCode.failed, 0]);
  });
});

describe("the money of coinslot verify", () => {
  it("is a throwaway account's on a local chain: the wallet's key signs nothing", async () => {
    const run = await verify(`${seller.url}/weather`, ["--only", "purchase,receipt", "--json"]);
    expect(run.code).toBe(exitCode.done);
    expect(statusesOf(run)).toMatchObject({
      "purchase x402 v2": "passed",
      "receipt x402 v2": "passed",
    });
    const { payments } = await seller.facilitator.payments.list();
    const payers = payments.map(({ authorization }) => authorization.payer.toLowerCase());
    expect(payers.length).toBeGreaterThan(0);
    expect(payers).not.toContain(devnet.accounts.buyer.address.toLowerCase());
  });

  it("stays where the node is no development node, though its URL is loopback", async () => {
    // A tunnel to a real chain's node looks like this.
    const tunnel = opening(
      await listen(async (request, response) => {
        const call = await json(request);
        const answer = await fetch(devnet.rpcUrl, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(call),
        });
        const text = await answer.text();
        response.end(text.replace(/anvil\/[^"]*/g, "Geth/v1.16.0"));
      }),
    );
    const before = await balanceOf(devnet.accounts.buyer.address);
    const env = {
      COINSLOT_NETWORK: devnet.network,
      COINSLOT_RPC_URL: tunnel.url,
      WALLET_PRIVATE_KEY: devnet.accounts.buyer.privateKey,
    };
    const { code, err } = await verify(`${seller.url}/weather`, [], { env });
    expect(err).toContain("no development chain of this machine");
    expect(code).toBe(exitCode.usage);
    expect(await balanceOf(devnet.accounts.buyer.address)).toBe(before);
  });

  it("is the wallet's with --real-money, after consent to number and sum", async () => {
    const { buyer } = devnet.accounts;
    const args = ["--real-money", "--only", "purchase,underpaid,charges"];
    const before = await balanceOf(buyer.address);
    const refused = await verify(`${seller.url}/weather`, args, { answer: false });
    expect(refused.questions).toEqual(["Pay?"]);
    expect(refused.err).toMatch(/at most 6[\s\S]*at most 0\.006 USDT0 in all/);
    expect(refused.code).toBe(exitCode.usage);
    expect((await verify(`${seller.url}/weather`, args)).err).toContain("add --yes");
    expect(await balanceOf(buyer.address)).toBe(before);

    const paid = await verify(`${seller.url}/weather`, args, { answer: true });
    expect(paid.code).toBe(exitCode.done);
    expect(paid.err).toContain("payment 6 of at most 6");
    expect(paid.err).toMatch(/payments are not taken yet, and may stay executable until \d{4}-/);
    // The three underpaid ones are not taken.
    expect(before - (await balanceOf(buyer.address))).toBe(3000n);
  });

  it("suffices for the transfer to itself of forged, where nothing else is paid", async () => {
    // It executes whatever the token would, and looks at no recipient.
    const shop = opening(
      await startHostileSeller({
        devnet,
        async onPayment(payment, response) {
          try {
            await devnet.client.call({ to: devnet.token, data: executionOf(payment) });
            response.writeHead(200).end();
          } catch {
            response.writeHead(402).end();
          }
        },
      }),
    );
    const { code, out } = await verify(`${shop.url}/weather`, ["--only", "forged"]);
    expect(out).toContain("served for another recipient");
    expect(code).toBe(exitCode.failed);
  });

  it("does not come from the seller's own recipient: its transfer to itself would pay", async () => {
    const env = {
      COINSLOT_NETWORK: devnet.network,
      COINSLOT_RPC_URL: devnet.rpcUrl,
      WALLET_PRIVATE_KEY: devnet.accounts.seller.privateKey,
    };
    const args = ["--real-money", "--yes"];
    const { code, err } = await verify(`${seller.url}/weather`, args, { env });
    expect(err).toContain("is the recipient of the payments");
    expect(code).toBe(exitCode.usage);
  });

  it("is at most --max-price for each payment: a dearer route is not checked", async () => {
    const args = ["--only", "offer,purchase", "--json"];
    const run = await verify(`${seller.url}/dear`, args);
    expect(run.code).toBe(exitCode.done);
    expect(statusesOf(run)).toMatchObject({ "offer x402 v2": "passed", purchase: "not checked" });
    const strict = await verify(`${seller.url}/dear`, [...args, "--require-all"]);
    expect(strict.code).toBe(exitCode.failed);
  });

  it("buys nothing at a price that was raised after the plan", async () => {
    const shop = opening(
      await startHostileSeller({
        devnet,
        price: (index) => (index === 0 ? 1000 : 2000),
        onPayment: (_payment, response) => void response.end(),
      }),
    );
    const args = ["--only", "purchase,concurrent", "--json"];
    const run = await verify(`${shop.url}/weather`, args);
    expect(statusesOf(run)).toEqual({
      "purchase x402 v2": "not checked",
      "concurrent x402 v2": "not checked",
    });
    expect(shop.payments).toEqual([]);
  });
});

describe("coinslot verify", () => {
  it("makes no payment with --unpaid, and says so", async () => {
    const run = await verify(`${seller.url}/weather`, ["--unpaid"], { env: {} });
    expect(run.code).toBe(exitCode.done);
    expect(run.out).toMatch(/not checked +purchase +--unpaid makes no payment/);
    expect(run.out).toMatch(/passed +head +HEAD is answered 402/);
  });

  it("needs neither wallet nor chain for checks that need no payer", async () => {
    const { code, out, err } = await verify(
      `${seller.url}/weather`,
      ["--only", "offer,head", "--json"],
      { env: {} },
    );
    expect([code, err]).toEqual([exitCode.done, ""]);
    expect(JSON.parse(out).findings).toHaveLength(4);
  });

  it.each([
    [429, "not checked"],
    [503, "warning"],
  ])("passes no check that a seller has answered with %i alone", async (answered, status) => {
    const shop = opening(
      await startHostileSeller({
        devnet,
        onPayment: (_payment, response) => void response.writeHead(answered).end(),
      }),
    );
    const checks = "forged,concurrent,underpaid";
    const run = await verify(`${shop.url}/weather`, ["--only", checks, "--json"]);
    expect(statusesOf(run)).toEqual({
      "forged x402 v2": status,
      "concurrent x402 v2": status,
      "underpaid x402 v2": status,
    });
  });

  it("asks every spelling in a form that a server reads", async () => {
    const paths: string[] = [];
    const shop = opening(
      await listen(({ url = "" }, response) => {
        paths.push(url);
        response.writeHead(402, { [headerName.paymentRequired]: "unreadable" }).end();
      }),
    );
    const { out } = await verify(`${shop.url}/weather`, ["--only", "spellings"], { env: {} });
    expect(out).toContain("12 spellings are closed");
    // The offer and the stranger's path come first.
    expect(paths).toHaveLength(14);
    expect(paths).toContain("/%2fweather");
  });

  it("fails a seller that serves anything, and names a foreign transaction as its receipt", async () => {
    const transaction = await devnet.mint({ to: devnet.accounts.seller.address, amount: 1000n });
    const receipt = encodeReceipt({ success: true, transaction, network: devnet.network }, 2);
    const shop = opening(
      await startHostileSeller({
        devnet,
        onPayment(_payment, response) {
          const headers = { [headerName.paymentResponse]: receipt, "cache-control": "public" };
          response.writeHead(200, headers).end("sun");
        },
      }),
    );
    const checks = "forged,purchase,receipt,caching,repeat,concurrent,underpaid";
    const run = await verify(`${shop.url}/weather`, ["--only", checks, "--json"]);
    expect(run.code).toBe(exitCode.failed);
    expect(statusesOf(run)).toEqual({
      "forged x402 v2": "failed",
      "purchase x402 v2": "passed",
      "receipt x402 v2": "failed",
      "caching x402 v2": "failed",
      "repeat x402 v2": "failed",
      "concurrent x402 v2": "failed",
      "underpaid x402 v2": "failed",
    });
  });

  it("fails a seller that takes the money and gives nothing", async () => {
    const shop = opening(
      await startHostileSeller({
        devnet,
        async onPayment(payment, response) {
          await devnet.send({ to: devnet.token, data: executionOf(payment) });
          response.writeHead(500).end();
        },
      }),
    );
    const run = await verify(`${shop.url}/weather`, ["--only", "purchase,charges"]);
    expect(run.code).toBe(exitCode.failed);
    expect(run.out).toContain("1 payments, 0 served: 1 charged and not served");
  });

  it("takes a redirect behind a payment for its delivery, as sellers charge for one", async () => {
    const shop = opening(
      await startHostileSeller({
        devnet,
        async onPayment(payment, response) {
          await devnet.send({ to: devnet.token, data: executionOf(payment) });
          response.writeHead(303, { location: "/file" }).end();
        },
      }),
    );
    const run = await verify(`${shop.url}/weather`, ["--only", "purchase,charges", "--json"]);
    expect(statusesOf(run)).toEqual({ "purchase x402 v2": "passed", charges: "passed" });
    const open = opening(
      await startHostileSeller({
        devnet,
        onPayment: (_payment, response) =>
          void response.writeHead(303, { location: "/file" }).end(),
      }),
    );
    const { out } = await verify(`${open.url}/weather`, ["--only", "forged"]);
    expect(out).toContain("served for garbage, a foreign signature, an empty account");
  });

  it("reports a handler that fails after the charge as the offer states it", async () => {
    const args = ["--failing", "/shaky", "--only", "failing-handler", "--json"];
    const { code, out } = await verify(`${seller.url}/weather`, args);
    expect(code).toBe(exitCode.done);
    expect(JSON.parse(out).findings).toContainEqual({
      check: "failing-handler",
      protocol: "x402 v1",
      status: "warning",
      found: "charged, and answered 500, as the offer states (upfront)",
    });
  });

  it("ends at an answer without an end, and at one without an offer", async () => {
    const dripping = opening(
      await listen((_request, response) => {
        response.writeHead(402);
        const timer = setInterval(() => response.write("x"), 50);
        response.once("close", () => clearInterval(timer));
      }),
    );
    const late = await verify(dripping.url, ["--timeout", "1"]);
    expect(late.err).toContain("no whole answer within 1 s");
    const huge = opening(
      await listen((_request, response) => {
        response.writeHead(402);
        const chunk = "x".repeat(65_536);
        const write = () => {
          while (!response.destroyed && response.write(chunk));
        };
        response.on("drain", write);
        write();
      }),
    );
    const cut = await verify(huge.url);
    expect(cut.err).toContain("402 with no offer");
    expect([late.code, cut.code]).toEqual([exitCode.failed, exitCode.failed]);
  });

  it("prints no control character of a seller", async () => {
    const shop = opening(
      await startHostileSeller({
        devnet,
        description: "\u001b[2Jsun",
        onPayment: (_payment, response) =>
          void response.writeHead(200, "\u009b2J", { "payment-response": "\u009b2J" }).end(),
      }),
    );
    const { out, err } = await verify(`${shop.url}/weather`, ["--only", "offer,purchase,receipt"]);
    expect(out).toMatch(/failed +receipt/);
    expect(`${out}${err}`).toMatch(/^[\x20-\x7e\n]*$/);
  });

  it("names the checks where it is asked for an unknown one", async () => {
    const { code, err } = await verify("http://127.0.0.1:1/", ["--only", "offer,nothing"]);
    expect(err).toContain("the checks are offer, agreement, head");
    expect(code).toBe(exitCode.usage);
  });
});
