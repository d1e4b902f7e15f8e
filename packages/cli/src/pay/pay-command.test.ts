import { readdirSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import type { RequestListener } from "node:http";
import { join } from "node:path";
import { type Devnet, listen, startDevnet, testUsdt0 } from "@coinslot/devnet";
import { type Address, encodeReceipt, headerName } from "@coinslot/protocol";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { exitCode } from "../exit-code.ts";
import { inFolder, type RunOptions, runCoinslot } from "../testing/run-coinslot.ts";
import { startTestSeller, type TestSeller } from "../testing/test-seller.ts";

let devnet: Devnet;
let seller: TestSeller;

beforeAll(async () => {
  devnet = await startDevnet({ accountCount: 5 });
  const [seen] = await Promise.all([
    startTestSeller({ devnet, ledger: "sqlite::memory:" }),
    devnet.mint({ to: devnet.accounts.buyer.address, amount: 20_000_000n }),
  ]);
  seller = seen;
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

function income(): Promise<bigint> {
  return balanceOf(seller.payTo);
}

function balanceOf(owner: Address, token = devnet.token): Promise<bigint> {
  const read = { abi: testUsdt0.abi, functionName: "balanceOf", args: [owner] } as const;
  return devnet.client.readContract({ address: token, ...read });
}

/** A seller of another implementation. */
async function withServer(listener: RequestListener, work: (url: string) => Promise<void>) {
  const server = await listen(listener);
  try {
    await work(server.url);
  } finally {
    await server.close();
  }
}

describe("coinslot pay", () => {
  it("shows the offer, prompts, pays, and prints answer and receipt separately", async () => {
    const before = await income();
    const { code, out, err, questions } = await pay([`${seller.url}/weather`], { answer: true });
    expect(err).toMatch(/costs +0\.001 USDT0 on Plasma \(eip155:9745\)/);
    expect(code).toBe(exitCode.done);
    expect(out).toBe('{"forecast":"sun"}');
    expect(questions).toEqual(["Pay?"]);
    expect(err.toLowerCase()).toContain(`to          ${seller.payTo}`.toLowerCase());
    expect(err).toMatch(/in +0x[0-9a-f]{64} on eip155:9745/);
    // On a terminal the receipt begins a line of its own, although the body ends without one.
    expect(err).toMatch(/\n\npaid +0\.001 USDT0/);
    expect(await income()).toBe(before + 1000n);
  });

  it("shows a seller's text without terminal control characters", async () => {
    const { err } = await pay([`${seller.url}/weather`], { answer: false });
    expect(err).toContain("Weather [2J, bright");
    expect(err).not.toContain("\u001b");
  });

  it("pays nothing when the answer is no, or no terminal is there to prompt", async () => {
    const before = await income();
    const no = await pay([`${seller.url}/weather`], { answer: false });
    expect(no).toMatchObject({ code: exitCode.usage, out: "" });
    expect(no.err).toContain("Nothing was paid.");
    const unattended = await pay([`${seller.url}/weather`]);
    expect(unattended).toMatchObject({ code: exitCode.usage, out: "" });
    expect(unattended.err).toContain("add --yes");
    expect(await income()).toBe(before);
  });

  it("lists all reasons why an offer is refused, with the remedies", async () => {
    const label = "a".repeat(60);
    const offer = await listen((request, response) => {
      const resource = `https://${label}.${label}.${label}.example/`;
      response.writeHead(402).end(
        JSON.stringify({
          x402Version: 1,
          error: "",
          accepts: [
            {
              scheme: "exact",
              network: devnet.network,
              maxAmountRequired: "1000",
              resource,
              description: "",
              mimeType: "",
              payTo: devnet.accounts.seller.address,
              maxTimeoutSeconds: 60,
              asset: devnet.token,
            },
          ],
        }),
      );
      request.resume();
    });
    onTestFinished(offer.close);
    const { code, err } = await pay([offer.url, "--yes"]);
    expect(code).toBe(exitCode.failed);
    expect(err).toContain("nothing was signed");
    expect(err).toContain("or lets its proxy pass on the Host header");
  });

  it("pays no more than its limit", async () => {
    const dear = await pay([`${seller.url}/dear`, "--yes"]);
    expect(dear.code).toBe(exitCode.failed);
    expect(dear.err).toContain("Give --max-price");
    const limited = await pay([`${seller.url}/weather`, "--yes", "--max-price", "$0.0009"]);
    expect(limited.code).toBe(exitCode.failed);
    const allowed = await pay([`${seller.url}/dear`, "--yes", "--max-price", "5"]);
    expect(allowed).toMatchObject({ code: exitCode.done, out: '{"forecast":"gold"}' });
  });

  it("sends data from the standard input, a file or the command line, and headers", async () => {
    await inFolder(async (folder) => {
      writeFileSync(join(folder, "data.bin"), Buffer.from("a\u0000b"));
      writeFileSync(join(folder, "headers"), "Content-Type: text/x-mine\n\nX-Other: 1\n");
      const url = `${seller.url}/echo`;
      const options = { folder, input: '{"q":1}' };
      const fromInput = await pay([url, "-d", "@-", "--yes", "--json"], options);
      expect(JSON.parse(fromInput.out)).toMatchObject({
        status: 200,
        body: '{"q":1}',
        payment: { state: "settled", terms: { amount: "1000" }, receipt: { success: true } },
      });
      const fromFile = await pay([url, "-d", "@data.bin", "-H", "@headers", "--yes"], options);
      expect(fromFile).toMatchObject({ code: exitCode.done, out: "a\u0000b" });
      const given = await pay([url, "-d", "a=b", "-X", "post", "--yes"], options);
      expect(given).toMatchObject({ code: exitCode.done, out: "a=b" });
    });
  });

  it("prints a free answer, and reports one that is no success", async () => {
    const free = await pay([`${seller.url}/free`]);
    expect(free).toMatchObject({ code: exitCode.done, out: "nothing to pay" });
    const missing = await pay([`${seller.url}/nowhere`]);
    expect(missing.code).toBe(exitCode.failed);
    expect(missing.err).toContain("404");
  });

  it("buys from a seller of version 1", async () => {
    const sold: string[] = [];
    const listener: RequestListener = (request, response) => {
      const payment = request.headers["x-payment"];
      if (typeof payment !== "string") {
        response.writeHead(402, { "content-type": "application/json" });
        response.end(JSON.stringify(offerOfVersion1(`http://${request.headers.host}/`)));
        return;
      }
      sold.push(Buffer.from(payment, "base64").toString());
      const transaction = `0x${"ab".repeat(32)}` as const;
      const receipt = { success: true, transaction, network: devnet.network };
      response.writeHead(200, { [headerName.paymentResponse]: encodeReceipt(receipt, 1) });
      response.end("sold");
    };
    await withServer(listener, async (url) => {
      const { code, out, err } = await pay([url, "--yes"]);
      expect(err).toMatch(/costs +0\.002 USDT0/);
      expect({ code, out }).toEqual({ code: exitCode.done, out: "sold" });
      expect(JSON.parse(sold[0] ?? "")).toMatchObject({ x402Version: 1 });
    });
  });

  it("pays with a token that the environment describes", async () => {
    const token = await devnet.deployToken({ name: "Points", version: "7", decimals: 2 });
    await devnet.mint({ token, to: devnet.accounts.buyer.address, amount: 2_000n });
    const listener: RequestListener = (request, response) => {
      const offer = offerOfVersion1(`http://${request.headers.host}/`, token);
      response.writeHead(402).end(JSON.stringify(offer));
    };
    await withServer(listener, async (url) => {
      const unknown = await pay([url], { answer: false });
      expect(unknown.err).toContain("COINSLOT_TOKENS");
      const env = { COINSLOT_TOKENS: `${devnet.network}/${token}/2/7/Points` };
      const known = await pay([url, "--max-price", "20"], { answer: false, env });
      expect(known.err).toMatch(/costs +20 Points \(2000 units of 0x[0-9a-f]{40}\)/);
    });
  });

  it("names coinslot doctor for an unreadable token", async () => {
    const missing = `0x${"dead".repeat(10)}`;
    const env = { COINSLOT_TOKENS: `${devnet.network}/${missing}` };
    expect(await pay([`${seller.url}/weather`, "--yes"], { env })).toMatchObject({
      code: exitCode.failed,
      err: `error: The token ${missing} on Plasma, which COINSLOT_TOKENS names, cannot be read: see coinslot doctor\n`,
    });
  });

  it("keeps a payment that was taken without a good answer, and resumes it", async () => {
    await inFolder(async (folder) => {
      const before = await income();
      const failed = await pay([`${seller.url}/shaky`, "--yes"], { folder });
      expect(failed).toMatchObject({ code: exitCode.unclear, out: "it broke" });
      expect(failed.err).toContain("It was paid, and the answer is 500");
      const [file = ""] = readdirSync(folder);
      expect(failed.err).toContain(`coinslot pay --resume ${file}`);
      expect(statSync(join(folder, file)).mode & 0o777).toBe(0o600);

      // Without a wallet: it is signed already.
      const resumed = await runCoinslot(["pay", "--resume", file], { folder });
      expect(resumed).toMatchObject({ code: exitCode.done, out: "it holds" });
      expect(readdirSync(folder)).toEqual([]);
      expect(await income()).toBe(before + 1000n);
    });
  });

  it("keeps a payment whose answer breaks off", async () => {
    await inFolder(async (folder) => {
      const listener: RequestListener = (request, response) => {
        if (request.headers["x-payment"] === undefined) {
          const offer = offerOfVersion1(`http://${request.headers.host}/`);
          response.writeHead(402).end(JSON.stringify(offer));
          return;
        }
        const transaction = `0x${"ab".repeat(32)}` as const;
        const receipt = { success: true, transaction, network: devnet.network };
        response.writeHead(200, {
          [headerName.paymentResponse]: encodeReceipt(receipt, 1),
          "content-length": "100",
        });
        response.write("the first half", () => response.destroy());
      };
      await withServer(listener, async (url) => {
        for (const args of [[], ["--json"]]) {
          const { code, err } = await pay([`${url}/?${args.length}`, "--yes", ...args], { folder });
          expect(err).toContain("the answer broke off");
          expect(err).toContain("coinslot pay --resume");
          expect(code).toBe(exitCode.unclear);
        }
        expect(readdirSync(folder)).toHaveLength(2);
      });
    });
  });

  it("keeps a payment during the send, in case the process is killed", async () => {
    await inFolder(async (folder) => {
      const seen: string[][] = [];
      const listener: RequestListener = (request, response) => {
        seen.push(readdirSync(folder));
        sell(request, response);
      };
      await withServer(listener, async (url) => {
        const { code, out } = await pay([url, "--yes"], { folder });
        expect({ code, out }).toEqual({ code: exitCode.done, out: "sold" });
      });
      expect(seen).toEqual([[], [expect.stringMatching(/^coinslot-payment-[0-9a-f]{16}\.json$/)]]);
      expect(readdirSync(folder)).toEqual([]);
    });
  });

  it("reports a payment even if another process removed the kept file", async () => {
    await inFolder(async (folder) => {
      const listener: RequestListener = (request, response) => {
        for (const name of readdirSync(folder)) rmSync(join(folder, name));
        sell(request, response);
      };
      await withServer(listener, async (url) => {
        const { code, out } = await pay([url, "--yes"], { folder });
        expect({ code, out }).toEqual({ code: exitCode.done, out: "sold" });
      });
    });
  });

  it("writes the kept payment again if its file was truncated meanwhile", async () => {
    await inFolder(async (folder) => {
      const listener: RequestListener = (request, response) => {
        if (request.headers["x-payment"] === undefined) return sell(request, response);
        for (const name of readdirSync(folder)) truncateSync(join(folder, name), 100);
        response.writeHead(503, { "retry-after": "999" }).end();
      };
      await withServer(listener, async (url) => {
        const { code } = await pay([url, "--yes"], { folder });
        expect(code).toBe(exitCode.unclear);
        const [file = "", ...others] = readdirSync(folder);
        expect(others).toEqual([]);
        expect(statSync(join(folder, file)).mode & 0o777).toBe(0o600);
        const resumed = await runCoinslot(["pay", "--resume", file], { folder });
        expect(resumed.err).not.toContain("not a kept payment");
        expect(resumed.code).toBe(exitCode.unclear);
      });
    });
  });

  it("reports possibly moved money even if the payment can no longer be kept", async () => {
    await inFolder(async (folder) => {
      const listener: RequestListener = (request, response) => {
        if (request.headers["x-payment"] === undefined) return sell(request, response);
        rmSync(folder, { recursive: true });
        response.writeHead(503, { "retry-after": "999" }).end();
      };
      await withServer(listener, async (url) => {
        const { code, err } = await pay([url, "--yes"], { folder, temporaryFolder: folder });
        expect(err).toContain("its outcome is unknown");
        expect(err).toContain("could not be kept");
        expect(code).toBe(exitCode.unclear);
      });
    });
  });

  it("keeps a payment in the temporary folder, and finds it there, without its own", async () => {
    await inFolder(async (temporaryFolder) => {
      const listener: RequestListener = (request, response) => {
        if (request.headers["x-payment"] === undefined) return sell(request, response);
        response.writeHead(503, { "retry-after": "999" }).end();
      };
      await withServer(listener, async (url) => {
        const options = { folder: join(temporaryFolder, "missing"), temporaryFolder };
        expect((await pay([url, "--yes"], options)).err).toContain("Resume with:");
        expect(readdirSync(temporaryFolder)).toHaveLength(1);
        const again = await pay([url, "--yes"], options);
        expect(again.err).toContain("The same request was paid before");
        const elsewhere = await pay([url, "--yes"]);
        expect(elsewhere.err).not.toContain("was paid before");
      });
    });
  });

  it("keeps a payment at an interruption", async () => {
    await inFolder(async (folder) => {
      let isPaid = (): void => undefined;
      const interruptOn = new Promise<void>((resolve) => {
        isPaid = resolve;
      });
      const listener: RequestListener = (request, response) => {
        const offer = offerOfVersion1(`http://${request.headers.host}/`);
        if (request.headers["x-payment"] !== undefined) isPaid();
        else response.writeHead(402).end(JSON.stringify(offer));
      };
      await withServer(listener, async (url) => {
        const ran = await pay([url, "--yes"], { folder, interruptOn });
        expect(ran.code).toBe(exitCode.unclear);
        expect(ran.err).toContain("coinslot pay --resume");
        expect(readdirSync(folder)).toHaveLength(1);
      });
    });
  });

  it("reports wrong arguments", async () => {
    const cases: [string[], RegExp][] = [
      [[], /Missing argument: URL/],
      [["ftp://example.com"], /http:\/\/ or https:\/\//],
      [[seller.url, "-d", "@nowhere"], /file nowhere cannot be read/],
      [[seller.url, "-H", "secret"], /--header must be/],
      [[seller.url, "-X", "GET", "-d", "x"], /takes no --data/],
      [[seller.url, "--max-price", "much"], /expected a price/],
      [["--resume", "nowhere.json"], /not a kept payment/],
    ];
    for (const [args, message] of cases) {
      const { code, err } = await pay(args);
      expect(err).toMatch(message);
      expect(code).toBe(exitCode.usage);
    }
    const poor = await pay([`${seller.url}/weather`, "--yes"], {
      env: { WALLET_PRIVATE_KEY: `0x${"11".repeat(32)}` },
    });
    expect(poor.code).toBe(exitCode.failed);
    expect(poor.err).toContain("coinslot wallet");
    const closed = await pay(["http://127.0.0.1:1/", "--yes"]);
    expect(closed.code).toBe(exitCode.failed);
    expect(closed.err).toContain("127.0.0.1:1 cannot be reached");
  });
});

/** Answers like a seller that treats every payment as settled. */
const sell: RequestListener = (request, response) => {
  if (request.headers["x-payment"] === undefined) {
    const offer = offerOfVersion1(`http://${request.headers.host}/`);
    response.writeHead(402).end(JSON.stringify(offer));
    return;
  }
  const transaction = `0x${"ab".repeat(32)}` as const;
  const receipt = { success: true, transaction, network: devnet.network };
  response
    .writeHead(200, { [headerName.paymentResponseV1]: encodeReceipt(receipt, 1) })
    .end("sold");
};

function offerOfVersion1(resource: string, asset = devnet.token) {
  const offered = {
    scheme: "exact",
    network: devnet.network,
    maxAmountRequired: "2000",
    resource,
    description: "",
    mimeType: "",
    payTo: devnet.accounts.seller.address,
    maxTimeoutSeconds: 60,
    asset,
  };
  return { x402Version: 1, error: "pay", accepts: [offered] };
}
