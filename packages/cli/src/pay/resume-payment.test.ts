import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type Devnet, listen, startDevnet } from "@coinslot/devnet";
import { pad, toFunctionSelector } from "viem";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { exitCode } from "../exit-code.ts";
import { inFolder, runCoinslot } from "../testing/run-coinslot.ts";
import { startTestSeller } from "../testing/test-seller.ts";

/** One per test, since each moves its time. */
let devnet: Devnet;

beforeEach(async () => {
  devnet = await startDevnet({ accountCount: 5 });
  onTestFinished(() => devnet.stop());
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
});

/** The time that has passed on the command's clock. */
let passedMs = 0;
beforeEach(() => {
  passedMs = 0;
});

function pay(folder: string, args: readonly string[], options: PayOptions = {}) {
  const { rpcUrls = [devnet.rpcUrl], answer, userId, temporaryFolder } = options;
  const env = {
    COINSLOT_NETWORK: devnet.network,
    COINSLOT_RPC_URL: rpcUrls.join(","),
    WALLET_PRIVATE_KEY: devnet.accounts.buyer.privateKey,
  };
  const now = () => Date.now() + passedMs;
  return runCoinslot(["pay", ...args], {
    folder,
    env,
    now,
    ...(answer === undefined ? {} : { answer }),
    ...(userId === undefined ? {} : { userId }),
    ...(temporaryFolder === undefined ? {} : { temporaryFolder }),
  });
}

interface PayOptions {
  rpcUrls?: readonly string[];
  answer?: boolean;
  userId?: number;
  temporaryFolder?: string;
}

/** On the chain, with enough blocks on top, and on the clock of the command. */
async function passTime(seconds: number) {
  await devnet.client.increaseTime({ seconds });
  for (let block = 0; block <= 10; block += 1) await devnet.mine();
  passedMs += seconds * 1000;
}

/** A seller of version 1 that gives each payment this answer, and counts them. */
async function startSeller(status: number) {
  const payments: unknown[] = [];
  const server = await listen((request, response) => {
    const offered = {
      scheme: "exact",
      network: devnet.network,
      maxAmountRequired: "2000",
      resource: `http://${request.headers.host}/`,
      description: "",
      mimeType: "",
      payTo: devnet.accounts.seller.address,
      maxTimeoutSeconds: 60,
      asset: devnet.token,
    };
    const payment = request.headers["x-payment"];
    if (payment !== undefined) payments.push(payment);
    response.writeHead(payment === undefined ? 402 : status);
    response.end(JSON.stringify({ x402Version: 1, error: "no", accepts: [offered] }));
  });
  onTestFinished(server.close);
  return { url: server.url, payments };
}

/** A node that reports every authorization as unused, or as used. */
async function startLyingNode(isUsed: boolean): Promise<string> {
  const selector = toFunctionSelector("authorizationState(address,bytes32)");
  const server = await listen(async (request, response) => {
    const body = await text(request);
    const headers = { "content-type": "application/json" };
    const given = await (await fetch(devnet.rpcUrl, { method: "POST", headers, body })).text();
    const lie = (answer: unknown) =>
      Object.assign({}, answer, { result: pad(isUsed ? "0x1" : "0x0") });
    const isAsked = body.includes(selector);
    const parsed: unknown = JSON.parse(given);
    const answer = Array.isArray(parsed) ? parsed.map(lie) : lie(parsed);
    response.writeHead(200, headers).end(isAsked ? JSON.stringify(answer) : given);
  });
  onTestFinished(server.close);
  return server.url;
}

it("a kept payment is not given up by one node's answer, at any time after its expiry", async () => {
  const { url, payments } = await startSeller(500);
  await inFolder(async (folder) => {
    expect(await pay(folder, [url, "--yes"])).toMatchObject({ code: exitCode.unclear });
    const [file = ""] = readdirSync(folder);
    expect(await pay(folder, ["--resume", file])).toMatchObject({ code: exitCode.unclear });
    const count = new Set(payments).size;
    for (const seconds of [600, 7_200, 31_536_000]) {
      await passTime(seconds);
      const resumed = await pay(folder, ["--resume", file]);
      expect(resumed).toMatchObject({ code: exitCode.unclear });
      expect(resumed.err).toContain("By the RPC endpoints of one host only");
      const again = await pay(folder, [url, "--yes"]);
      expect(again).toMatchObject({ code: exitCode.unclear });
      expect(again.err).toContain("only the RPC endpoints of one host report it as never taken");
      expect(readdirSync(folder)).toEqual([file]);
    }
    expect(new Set(payments).size).toBe(count);
  });
});

it("a kept payment is given up soon after its expiry, if nodes of two hosts or a person agree", async () => {
  const { url } = await startSeller(500);
  const second = await startLyingNode(false);
  for (const options of [{ rpcUrls: [devnet.rpcUrl, second] }, { answer: true }]) {
    await inFolder(async (folder) => {
      await pay(folder, [url, "--yes"]);
      const [file = ""] = readdirSync(folder);
      await passTime(600);
      const no = await pay(folder, ["--resume", file], { answer: false });
      expect(no).toMatchObject({ code: exitCode.unclear, questions: ["Give it up?"] });
      const { code } = await pay(folder, ["--resume", file], options);
      expect(code).toBe(exitCode.failed);
      expect(readdirSync(folder)).toEqual([]);
    });
  }
});

it("a kept payment that was taken is kept when one of two nodes denies it", async () => {
  const seller = await startTestSeller({ devnet, ledger: "sqlite::memory:" });
  const liar = await startLyingNode(false);
  await inFolder(async (folder) => {
    await pay(folder, [`${seller.url}/shaky`, "--yes"]);
    await seller.stop();
    const [file = ""] = readdirSync(folder);
    await passTime(600);
    // At once: each tries for seconds to reach the seller, who is gone.
    const resume = async (from: string, rpcUrls: readonly string[]) => {
      const { code } = await pay(from, ["--resume", file], { rpcUrls, answer: true });
      expect(code).toBe(exitCode.unclear);
      expect(readdirSync(from)).toEqual([file]);
    };
    await inFolder(async (other) => {
      copyFileSync(join(folder, file), join(other, file));
      await Promise.all([
        resume(folder, [liar, devnet.rpcUrl]),
        resume(other, [devnet.rpcUrl, liar]),
      ]);
    });
  });
});

it("a kept payment is not looked up before its expiry by the local clock", async () => {
  const { url } = await startSeller(500);
  await inFolder(async (folder) => {
    await pay(folder, [url, "--yes"]);
    const [file = ""] = readdirSync(folder);
    await passTime(7_200);
    passedMs = 0;
    const { code } = await pay(folder, ["--resume", file], { answer: true });
    expect(code).toBe(exitCode.unclear);
    expect(readdirSync(folder)).toEqual([file]);
  });
});

it.each([402, 500])(
  "no second payment is signed while one that was answered %i may be taken",
  async (status) => {
    const { url, payments } = await startSeller(status);
    await inFolder(async (folder) => {
      await pay(folder, [url, "--yes"]);
      const count = new Set(payments).size;
      expect(readdirSync(folder)).toHaveLength(1);
      const again = await pay(folder, [url, "--yes"]);
      expect(again.code).toBe(exitCode.unclear);
      expect(again.err).toContain("Nothing was paid now. Resume with: coinslot pay --resume");
      const no = await pay(folder, [url], { answer: false });
      expect(no).toMatchObject({ code: exitCode.usage, questions: ["Pay a second time?"] });
      expect(new Set(payments).size).toBe(count);
      // Another request is another purchase.
      await pay(folder, [`${url}/?other`, "--yes"]);
      expect(new Set(payments).size).toBe(count + 1);

      await passTime(7_200);
      const later = await pay(folder, [url], { answer: true });
      expect(later.questions).toEqual(["Pay a second time?", "Pay?"]);
      expect(new Set(payments).size).toBe(count + 2);
      // The person's confirmation gives up the first one: kept are the second, and the other
      // request's.
      expect(readdirSync(folder)).toHaveLength(2);
    });
  },
);

it("a payment resumed from elsewhere is kept in its own file only", async () => {
  const { url } = await startSeller(500);
  await inFolder((elsewhere) =>
    inFolder(async (folder) => {
      await pay(elsewhere, [url, "--yes"]);
      const [name = ""] = readdirSync(elsewhere);
      const file = join(elsewhere, name);
      symlinkSync(file, join(folder, "link"));
      for (const named of [file, "link"]) {
        const resumed = await pay(folder, ["--resume", named]);
        expect(resumed.code).toBe(exitCode.unclear);
        expect(resumed.err).toContain(`Resume with: coinslot pay --resume ${file}\n`);
        expect(resumed.err).not.toContain("From this folder");
        expect([readdirSync(elsewhere), readdirSync(folder)]).toEqual([[name], ["link"]]);
      }
    }),
  );
});

it.each([
  ["renamed", (from: string, to: string) => renameSync(from, to)],
  [
    "linked under another name alone",
    (from: string, to: string) => {
      linkSync(from, to);
      rmSync(from);
    },
  ],
])(
  "a kept payment that was %s is not reported as one that prevents a second",
  async (_how, move) => {
    const { url, payments } = await startSeller(500);
    await inFolder(async (folder) => {
      const first = await pay(folder, [url, "--yes"]);
      expect(first.err).toContain("From this folder, the same request is not paid a second time");
      const [name = ""] = readdirSync(folder);
      move(join(folder, name), join(folder, "mine.json"));
      const resumed = await pay(folder, ["--resume", "mine.json"]);
      expect(resumed.code).toBe(exitCode.unclear);
      expect(resumed.err).toContain("Resume with: coinslot pay --resume mine.json\n");
      expect(resumed.err).toContain(
        "A file of another name, folder or owner does not prevent that.",
      );
      expect(resumed.err).not.toContain("is not paid a second time");

      renameSync(join(folder, "mine.json"), join(folder, name));
      const found = await pay(folder, ["--resume", name]);
      expect(found.err).toContain("From this folder, the same request is not paid a second time");
      const count = new Set(payments).size;
      expect(await pay(folder, [url, "--yes"])).toMatchObject({ code: exitCode.unclear });
      expect(new Set(payments).size).toBe(count);
    });
  },
);

it("a kept payment is found from a folder that is reached by a link, and is reported as such", async () => {
  const { url } = await startSeller(500);
  await inFolder((elsewhere) =>
    inFolder(async (folder) => {
      const link = join(elsewhere, "link");
      symlinkSync(folder, link);
      await pay(link, [url, "--yes"]);
      const [name = ""] = readdirSync(folder);
      const resumed = await pay(link, ["--resume", name]);
      expect(resumed.err).toContain("From this folder, the same request is not paid a second time");
      const again = await pay(link, [url, "--yes"]);
      expect(again.err).toContain("The same request was paid before");
    }),
  );
});

it("a payment that another user has put there prevents none of this user", async () => {
  const { url, payments } = await startSeller(500);
  const userId = (process.geteuid?.() ?? 0) + 1;
  await inFolder(async (folder) => {
    await pay(folder, [url, "--yes"]);
    const count = new Set(payments).size;
    const another = await pay(folder, [url, "--yes"], { userId });
    expect(new Set(payments).size).toBe(count + 1);
    expect(another.err).not.toContain("was paid before");
    expect(another.err).toContain("A file of another name, folder or owner does not prevent that.");
  });
});

it("a kept payment that cannot be written again is reported with its existing file", async () => {
  const { url } = await startSeller(500);
  await inFolder(async (folder) => {
    await pay(folder, [url, "--yes"]);
    const [file = ""] = readdirSync(folder);
    mkdirSync(join(folder, `${file}.tmp`));
    const temporaryFolder = join(folder, "temporary");
    mkdirSync(temporaryFolder);
    const resumed = await pay(folder, ["--resume", file], { temporaryFolder });
    expect(resumed.err).toContain(`Resume with: coinslot pay --resume ${file}\n`);
    expect(readdirSync(temporaryFolder)).toEqual([]);
  });
});

it.each([[[]], [["node.example"]]])(
  "a kept payment is sent again where its network has no RPC URL, as by %j",
  async (rpcUrls) => {
    const { url, payments } = await startSeller(500);
    await inFolder(async (folder) => {
      await pay(folder, [url, "--yes"]);
      const [file = ""] = readdirSync(folder);
      const resumed = await pay(folder, ["--resume", file], { rpcUrls });
      expect(resumed.code).toBe(exitCode.unclear);
      expect(payments).toHaveLength(2);
    });
  },
);

it("a kept payment above the maximum size is not read", async () => {
  const { url } = await startSeller(500);
  await inFolder(async (folder) => {
    await pay(folder, [url, "--yes"]);
    const [file = ""] = readdirSync(folder);
    appendFileSync(join(folder, file), " ".repeat(9 * 1024 * 1024));
    const resumed = await pay(folder, ["--resume", file]);
    expect(resumed).toMatchObject({ code: exitCode.usage });
    expect(resumed.err).toContain("is not a kept payment");
  });
});

it("a pipe with the name of a kept payment is not waited for", async () => {
  const { url, payments } = await startSeller(500);
  await inFolder(async (folder) => {
    execFileSync("mkfifo", [join(folder, "coinslot-payment-0123456789abcdef.json")]);
    expect(await pay(folder, [url, "--yes"])).toMatchObject({ code: exitCode.unclear });
    expect(payments).not.toHaveLength(0);
  });
});

it("a kept payment that was taken stays, at any age", async () => {
  const seller = await startTestSeller({ devnet, ledger: "sqlite::memory:" });
  await inFolder(async (folder) => {
    const failed = await pay(folder, [`${seller.url}/shaky`, "--yes"]);
    await seller.stop();
    expect(failed).toMatchObject({ code: exitCode.unclear });
    const [file = ""] = readdirSync(folder);

    await passTime(7_200);
    const resumed = await pay(folder, ["--resume", file], { answer: true });
    expect(resumed).toMatchObject({ code: exitCode.unclear });
    expect(readdirSync(folder)).toEqual([file]);
  });
});
