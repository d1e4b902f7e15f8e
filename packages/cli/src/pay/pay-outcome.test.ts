import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import type { RequestListener } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type Devnet, listen, startDevnet } from "@coinslot/devnet";
import { encodePaymentRequired, encodeReceipt, headerName } from "@coinslot/protocol";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { exitCode } from "../exit-code.ts";
import { inFolder, type RunOptions, runCoinslot } from "../testing/run-coinslot.ts";
import { startTestSeller, type TestSeller } from "../testing/test-seller.ts";

let devnet: Devnet;
let seller: TestSeller;

beforeAll(async () => {
  devnet = await startDevnet({ accountCount: 5 });
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 20_000_000n });
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
    ...options.env,
  };
  return runCoinslot(["pay", ...args], { ...options, env });
}

/** A seller of version 2 that treats every payment as settled, and answers with this body. */
async function withSeller(
  answer: { body?: string | Buffer; paid?: RequestListener; extra?: object; asset?: string },
  work: (url: string) => Promise<void>,
) {
  const server = await listen((request, response) => {
    const { url = "" } = request;
    const resource = { url: `http://${request.headers.host}${url}` };
    if (request.headers["payment-signature"] === undefined) {
      const offered = {
        scheme: "exact",
        network: devnet.network,
        amount: "2000",
        asset: answer.asset ?? devnet.token,
        payTo: devnet.accounts.seller.address,
        maxTimeoutSeconds: 60,
        extra: { name: "USDT0", version: "1", ...answer.extra },
      };
      const offer = { x402Version: 2, resource, accepts: [offered] };
      const header = Buffer.from(JSON.stringify(offer)).toString("base64");
      response.writeHead(402, { [headerName.paymentRequired]: header }).end();
      return;
    }
    if (answer.paid) return answer.paid(request, response);
    response.writeHead(200, receiptHeaders()).end(answer.body);
  });
  try {
    await work(server.url);
  } finally {
    await server.close();
  }
}

function receiptHeaders() {
  const transaction = `0x${"ab".repeat(32)}` as const;
  const receipt = encodeReceipt({ success: true, transaction, network: devnet.network }, 2);
  return { [headerName.paymentResponse]: receipt };
}

/** Another host with the same answers about the chain. */
async function startSecondNode(): Promise<string> {
  const server = await listen(async (request, response) => {
    const headers = { "content-type": "application/json" };
    const init = { method: "POST", headers, body: await text(request) };
    const answer = await fetch(devnet.rpcUrl, init);
    response.writeHead(200, headers).end(await answer.text());
  });
  onTestFinished(server.close);
  return server.url;
}

function errorOf(code: string): Error {
  return Object.assign(new Error(`${code}: write`), { code });
}

/**
 * Characters that hide text or control a terminal: CSI, C1, right-to-left, zero width, other
 * spaces, a blank letter.
 */
const hostile = "a\u001b[2J\u009b1mb\u202Ec\u200bd\u00a0e\u2028f\u3164g\u{e0041}h";
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{DI}\u00a0\u202f]/u;

describe("a paid answer that cannot be written", () => {
  it.each([
    ["as it is", []],
    ["as JSON", ["--json"]],
  ])(
    "is reported with its receipt, and kept, since the tokens have moved: %s",
    async (_name, args) => {
      await inFolder(async (folder) => {
        const options = { folder, outputError: errorOf("ENOSPC") };
        const failed = await pay([`${seller.url}/weather`, "--yes", ...args], options);
        expect(failed.code).toBe(exitCode.unclear);
        expect(failed.err).toContain(
          "It was paid, and the answer could not be written: ENOSPC: write.",
        );
        expect(failed.err).toMatch(/in +0x[0-9a-f]{64} on eip155:9745/);
        const [file = ""] = readdirSync(folder);
        expect(failed.err).toContain(`coinslot pay --resume ${file}`);
        expect(JSON.parse(readFileSync(join(folder, file), "utf8"))).toMatchObject({
          request: { url: `${seller.url}/weather` },
          receipt: { success: true, transaction: expect.stringMatching(/^0x/) },
        });
        const resumed = await pay(["--resume", file], { folder });
        expect(resumed).toMatchObject({ code: exitCode.done, out: '{"forecast":"sun"}' });
        expect(readdirSync(folder)).toEqual([]);
      });
    },
  );

  it("is a success where its reader has left, and the output names the way to get all of it", async () => {
    await inFolder(async (folder) => {
      const options = { folder, outputError: errorOf("EPIPE") };
      const { code, err } = await pay([`${seller.url}/weather`, "--yes"], options);
      expect(code).toBe(exitCode.done);
      expect(err).toContain("It was paid, and the reader of the output left");
      const [file = ""] = readdirSync(folder);
      expect(err).toContain(`coinslot pay --resume ${file}`);

      const again = await pay([`${seller.url}/weather`, "--yes"], { folder });
      expect(again).toMatchObject({ code: exitCode.unclear, out: "" });
      expect(again.err).toContain(
        `Nothing was paid now. Resume with: coinslot pay --resume ${file}`,
      );
      const resumed = await pay(["--resume", file], { folder });
      expect(resumed).toMatchObject({ code: exitCode.done, out: '{"forecast":"sun"}' });
      expect(readdirSync(folder)).toEqual([]);
    });
  });

  it("is a failure without a payment for a free request", async () => {
    const options = { outputError: errorOf("ENOSPC") };
    const { code, err } = await pay([`${seller.url}/free`, "--yes"], options);
    expect(err).toContain("The answer could not be written: ENOSPC: write. Nothing was paid.");
    expect(code).toBe(exitCode.failed);
  });
});

describe("an answer on a terminal", () => {
  it("shows no terminal control characters", async () => {
    await withSeller({ body: `first\r\n${hostile}\n` }, async (url) => {
      const { code, out } = await pay([url, "--yes"], { isTerminal: true });
      expect(code).toBe(exitCode.done);
      expect(out).toBe(
        "first\na\\u{1b}[2J\\u{9b}1mb\\u{202e}c\\u{200b}d\\u{a0}e\\u{2028}f\\u{3164}g\\u{e0041}h\n",
      );
    });
  });

  it("is written to a file where it is not text", async () => {
    const body = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x1b, 0x5b, 0x32, 0x4a]);
    await inFolder(async (folder) => {
      await withSeller({ body }, async (url) => {
        const { code, out, err } = await pay([url, "--yes"], { folder, isTerminal: true });
        expect({ code, out }).toEqual({ code: exitCode.done, out: "" });
        const [file = "", ...others] = readdirSync(folder);
        expect(others).toEqual([]);
        expect(err).toContain(`It is in the file ${file}.`);
        expect(readFileSync(join(folder, file))).toEqual(body);
        expect(statSync(join(folder, file)).mode & 0o777).toBe(0o600);
      });
    });
  });

  it("is unchanged in a pipe, and escaped in JSON", async () => {
    await withSeller({ body: hostile }, async (url) => {
      expect((await pay([url, "--yes"])).out).toBe(hostile);
      const { out } = await pay([url, "--yes", "--json"]);
      expect(out.replaceAll("\n", "")).not.toMatch(unsafe);
      expect(JSON.parse(out)).toMatchObject({ body: hostile });
    });
  });

  it("shows a token's name in one printable line", async () => {
    const token = await devnet.deployToken({ name: hostile, version: "1", decimals: 2 });
    await devnet.mint({ token, to: devnet.accounts.buyer.address, amount: 9_000n });
    const env = {
      COINSLOT_RPC_URL: `${devnet.rpcUrl},${await startSecondNode()}`,
      COINSLOT_TOKENS: `${devnet.network}/${token}`,
    };
    await withSeller({ asset: token, extra: { name: hostile } }, async (url) => {
      const { err } = await pay([url, "--max-price", "20"], { answer: false, env });
      expect(err).toMatch(
        /costs +20 a \[2J 1mb c d e f g h \(2000 units of 0x[0-9a-f]{40}\) on Plasma/,
      );
      expect(err.replaceAll("\n", "")).not.toMatch(unsafe);
    });
  });
});

describe("a 402 that never ends", () => {
  it("times out, and pays nothing", async () => {
    const server = await listen((_request, response) => {
      response.writeHead(402);
      const drip = setInterval(() => response.write("."), 50);
      response.once("close", () => clearInterval(drip));
    });
    try {
      const { code, err } = await pay([server.url, "--yes"]);
      expect(err).toContain("The answer is 402");
      expect(code).toBe(exitCode.failed);
    } finally {
      await server.close();
    }
  });
});

it("coinslot pay reads a kept payment of the previous version, which has no receipt", async () => {
  await inFolder(async (folder) => {
    const failed = await pay([`${seller.url}/weather`, "--yes"], {
      folder,
      outputError: errorOf("ENOSPC"),
    });
    expect(failed.code).toBe(exitCode.unclear);
    const [file = ""] = readdirSync(folder);
    const { receipt: _receipt, ...rest } = JSON.parse(readFileSync(join(folder, file), "utf8"));
    writeFileSync(join(folder, file), JSON.stringify(rest));
    expect(await pay(["--resume", file], { folder })).toMatchObject({ code: exitCode.done });
  });
});

it.each([
  ["at once", 200],
  ["when it is resumed", 500],
])(
  "an answer that was paid %s is a success although its file cannot be removed",
  async (_when, status) => {
    await inFolder(async (folder) => {
      const statuses = [status, 200];
      const paid: RequestListener = (_request, response) => {
        const answered = statuses.shift() ?? 200;
        const [file = ""] = readdirSync(folder);
        // A folder in place of the file prevents the removal for every user and on every system.
        if (answered === 200) {
          rmSync(join(folder, file));
          mkdirSync(join(folder, file));
        }
        response.writeHead(answered, answered === 200 ? receiptHeaders() : {}).end("sold");
      };
      await withSeller({ paid }, async (url) => {
        const first = await pay([url, "--yes"], { folder });
        const [file = ""] = readdirSync(folder);
        const last = status === 200 ? first : await pay(["--resume", file], { folder });
        expect(last).toMatchObject({ code: exitCode.done, out: "sold" });
        expect(last.err).toContain("The payment is at its end, and its file could not be removed");
      });
    });
  },
);

// The last test, since it moves the chain's time.
describe("a payment that its seller refuses", () => {
  it("may still be taken: it is kept until the chain shows that it was not", async () => {
    await inFolder(async (folder) => {
      const paid: RequestListener = (request, response) => {
        const resource = { url: `http://${request.headers.host}/` };
        const offer = {
          x402Version: 2 as const,
          error: `not ${hostile} you`,
          resource,
          accepts: [],
        };
        const header = encodePaymentRequired(offer);
        response.writeHead(402, { [headerName.paymentRequired]: header }).end();
      };
      await withSeller({ paid }, async (url) => {
        const refused = await pay([url, "--yes"], { folder });
        expect(refused.err).toContain(
          "The seller refused the payment: not a [2J 1mb c d e f g h you",
        );
        expect(refused.err).toContain("It could still take it until");
        expect(refused.code).toBe(exitCode.unclear);
        const [file = ""] = readdirSync(folder);
        expect(refused.err).toContain(
          "the same request is not paid a second time without a prompt",
        );
        expect(refused.err).toContain(`coinslot pay --resume ${file}`);
        const early = await pay(["--resume", file], { folder });
        expect(early.err).toContain("The seller's reason: not a [2J 1mb c d e f g h you");
        expect(early.code).toBe(exitCode.unclear);
        expect(readdirSync(folder)).toEqual([file]);

        const seconds = 7_200;
        await devnet.client.increaseTime({ seconds });
        for (let block = 0; block <= 10; block += 1) await devnet.mine();
        const now = () => Date.now() + seconds * 1000;
        const over = await pay(["--resume", file], { folder, now, answer: true });
        expect(over.err).toContain("It may be requested again");
        expect(over.code).toBe(exitCode.failed);
        expect(readdirSync(folder)).toEqual([]);
      });
    });
  });
});
