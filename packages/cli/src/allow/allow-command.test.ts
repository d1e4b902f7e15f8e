import {
  cpSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type Devnet, listen, startDevnet } from "@coinslot/devnet";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exitCode } from "../exit-code.ts";
import { loadEnvironment } from "../load-environment.ts";
import { inFolder, type RunOptions, runCoinslot } from "../testing/run-coinslot.ts";
import { startTestSeller, type TestSeller } from "../testing/test-seller.ts";

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

/** A checkout with an .env file, and a user with a state folder of its own. */
async function inCheckout(work: (checkout: Checkout) => Promise<void>): Promise<void> {
  await inFolder(async (folder) => {
    const checkout = join(folder, "checkout");
    const state = join(folder, "state");
    mkdirSync(checkout);
    const lines = (more: Record<string, string> = {}) => ({
      COINSLOT_NETWORK: devnet.network,
      COINSLOT_RPC_URL: devnet.rpcUrl,
      ...more,
    });
    const write = (values: Record<string, string>) => {
      const text = Object.entries(values).map(([name, value]) => `${name}=${value}\n`);
      writeFileSync(join(checkout, ".env"), text.join(""));
    };
    write(lines());
    await work({
      folder: checkout,
      state,
      write: (more) => write(lines(more)),
      async run(args, { env = {}, ...options } = {}) {
        const own = {
          XDG_STATE_HOME: state,
          WALLET_PRIVATE_KEY: devnet.accounts.buyer.privateKey,
          ...env,
        };
        const loaded = await loadEnvironment(own, checkout);
        return runCoinslot(args, { ...options, ...loaded, folder: checkout });
      },
    });
  });
}

interface Checkout {
  folder: string;
  state: string;
  write(more: Record<string, string>): void;
  run(
    args: readonly string[],
    options?: Omit<RunOptions, "env"> & { env?: Record<string, string> },
  ): ReturnType<typeof runCoinslot>;
}

const url = () => `${seller.url}/weather`;

describe("coinslot pay in a folder whose .env names nodes", () => {
  it("refuses to pay without a prompt until the folder is allowed, and names the command", async () => {
    await inCheckout(async ({ run, state }) => {
      const refused = await run(["pay", url(), "--yes"]);
      expect(refused.code).toBe(exitCode.usage);
      expect(refused.err).toMatch(/COINSLOT_RPC_URL +http:\/\/127\.0\.0\.1:\d+/);
      expect(refused.err).toContain('run "coinslot allow" here');

      const allowed = await run(["allow"]);
      expect(allowed).toMatchObject({ code: exitCode.done, out: "" });
      expect(allowed.err).toMatch(/COINSLOT_NETWORK +eip155:9745/);
      const paid = await run(["pay", url(), "--yes"]);
      expect(paid).toMatchObject({ code: exitCode.done, out: '{"forecast":"sun"}' });
      const folder = join(state, "coinslot", "allowed");
      const [file = ""] = readdirSync(folder);
      expect(statSync(join(folder, file)).mode & 0o777).toBe(0o600);
      expect((await run(["allow"])).err).toContain("is allowed already");
    });
  });

  it("prompts once, and again after each change", async () => {
    await inCheckout(async ({ run, write }) => {
      const no = await run(["pay", url()], { answers: (question) => question !== "Use these?" });
      expect(no).toMatchObject({ code: exitCode.usage, questions: ["Use these?"] });
      const first = await run(["pay", url()], { answer: true });
      expect(first).toMatchObject({ code: exitCode.done, questions: ["Use these?", "Pay?"] });
      const second = await run(["pay", url()], { answer: true });
      expect(second.questions).toEqual(["Pay?"]);
      write({ COINSLOT_RPC_URL_988: "http://127.0.0.1:1" });
      const changed = await run(["pay", url()], { answer: true });
      expect(changed.questions).toEqual(["Use these?", "Pay?"]);
    });
  });

  it("shows neither keys nor possible keys in a URL", async () => {
    await inCheckout(async ({ run, write }) => {
      const { privateKey, address } = devnet.accounts.buyer;
      write({ WALLET_PRIVATE_KEY: privateKey, COINSLOT_RPC_URL_988: "https://a.example/secret" });
      const env = { WALLET_PRIVATE_KEY: "" };
      const { err } = await run(["pay", url(), "--yes"], { env });
      expect(err).toMatch(new RegExp(`WALLET_PRIVATE_KEY +the account ${address}`));
      expect(err).toMatch(/COINSLOT_RPC_URL_988 +a\.example$/m);
      expect(err).not.toContain(privateKey);
      expect(err).not.toContain("secret");
    });
  });

  it("prompts again when a file named by a setting changes", async () => {
    await inCheckout(async ({ run, write, folder }) => {
      const file = join(folder, "url");
      write({ COINSLOT_RPC_URL_988_FILE: file });
      writeFileSync(file, "http://127.0.0.1:1\n");
      await run(["allow"]);
      expect((await run(["pay", url(), "--yes"])).code).toBe(exitCode.done);
      writeFileSync(file, "http://127.0.0.1:2\n");
      expect((await run(["pay", url(), "--yes"])).code).toBe(exitCode.usage);
      rmSync(file);
    });
  });

  it("uses a setting's file as it was shown, without changes after the yes", async () => {
    await inCheckout(async ({ run, write, folder }) => {
      const file = join(folder, "url");
      write({ COINSLOT_RPC_URL: "", COINSLOT_RPC_URL_FILE: file });
      writeFileSync(file, `${devnet.rpcUrl}\n`);
      const answers = (question: string) => {
        if (question === "Use these?") writeFileSync(file, "http://127.0.0.1:1\n");
        return true;
      };
      const { code, questions } = await run(["pay", url()], { answers });
      expect(questions).toEqual(["Use these?", "Pay?"]);
      expect(code).toBe(exitCode.done);
    });
  });

  it("refuses a setting's file that is not regular or not readable", async () => {
    await inCheckout(async ({ run, write, folder }) => {
      const file = join(folder, "url");
      writeFileSync(file, "http://127.0.0.1:1\n");
      // A surrounding space makes it another path here, while other programs trim it.
      for (const named of [`" ${file} "`, join(folder, "absent")]) {
        write({ COINSLOT_RPC_URL_988_FILE: named });
        const { code, err } = await run(["allow"]);
        expect(err).toContain("The file that COINSLOT_RPC_URL_988_FILE names cannot be read.");
        expect(code).toBe(exitCode.usage);
      }
    });
  });

  it("shows the whole of a long value, without terminal control characters", async () => {
    await inFolder(async (folder) => {
      const checkout = join(folder, "a\u001b[2Jb");
      mkdirSync(checkout);
      const token = (digit: string) => `${devnet.network}/0x${digit.repeat(40)}/6/2/Name`;
      const tokens = ["1", "2", "3", "4"].map(token).join(",");
      writeFileSync(join(checkout, ".env"), `COINSLOT_TOKENS="${tokens}"\n`);
      const env = { XDG_STATE_HOME: join(folder, "state") };
      const { err } = await runCoinslot(["allow"], await loadEnvironment(env, checkout));
      expect(err).toContain(tokens);
      expect(err).not.toContain("\u001b");
    });
  });

  it("needs no allowance for settings of the environment, nor for a file that they name", async () => {
    await inCheckout(async ({ run, folder }) => {
      const env = { COINSLOT_NETWORK: devnet.network, COINSLOT_RPC_URL: devnet.rpcUrl };
      expect((await run(["pay", url(), "--yes"], { env })).code).toBe(exitCode.done);
      const named = { COINSLOT_ENV_FILE: join(folder, ".env") };
      expect((await run(["pay", url(), "--yes"], { env: named })).code).toBe(exitCode.done);
    });
  });

  it("does not store its allowances in the folder, for any XDG_STATE_HOME", async () => {
    await inCheckout(async ({ run, folder }) => {
      const env = { XDG_STATE_HOME: "checkout/state", LOCALAPPDATA: join(folder, "..", "other") };
      await run(["allow"], { env });
      expect(readdirSync(folder)).toEqual([".env"]);
      expect(readdirSync(join(folder, "..", "other", "coinslot", "allowed"))).toHaveLength(1);
    });
  });
});

describe("a folder that is the user's home", () => {
  it.each([
    ["in it", (folder: string) => join(folder, "state")],
    ["behind a link in it", (folder: string) => join(folder, "link")],
    ["in it by another name", (folder: string) => join(folder, "..", "alias", "state")],
  ])("brings no allowance of its own: %s", async (_where, homeIn) => {
    await inCheckout(async ({ run, folder, state }) => {
      await run(["allow"]);
      renameSync(state, join(folder, "state"));
      mkdirSync(join(folder, "..", "outside"));
      cpSync(join(folder, "state"), join(folder, "..", "outside"), { recursive: true });
      symlinkSync(join(folder, "..", "outside"), join(folder, "link"));
      symlinkSync(folder, join(folder, "..", "alias"));
      const own = join(folder, "..", "own");
      const env = { XDG_STATE_HOME: homeIn(folder), LOCALAPPDATA: own };
      const { code, err } = await run(["pay", url(), "--yes"], { env });
      expect(err).toContain("coinslot allow");
      expect(code).toBe(exitCode.usage);
      await run(["allow"], { env });
      expect(readdirSync(join(own, "coinslot", "allowed"))).toHaveLength(1);
      expect((await run(["pay", url(), "--yes"], { env })).code).toBe(exitCode.done);
    });
  });
});

describe("coinslot bridge send in such a folder", () => {
  it("asks no node before the folder is allowed", async () => {
    let calls = 0;
    const server = await listen((_request, response) => {
      calls += 1;
      response.writeHead(503).end();
    });
    try {
      await inCheckout(async ({ run, write }) => {
        write({ BRIDGE_RPC_URL: server.url });
        const token = ["--token", devnet.token, "--amount", "1", "--to", "ethereum"];
        const fees = ["--max-bridge-fee", "1", "--max-total-fee", "1", "--yes"];
        const args = ["bridge", "send", "--rpc-url", server.url, ...token, ...fees];
        const { code, err } = await run(args);
        expect(code).toBe(exitCode.usage);
        expect(err).toContain("coinslot allow");
        expect(calls).toBe(0);
      });
    } finally {
      await server.close();
    }
  });
});

describe("coinslot allow", () => {
  it("reports a folder without anything to allow", async () => {
    await inFolder(async (folder) => {
      const { code, err } = await runCoinslot(["allow"], { folder });
      expect(code).toBe(exitCode.done);
      expect(err).toContain("nothing to allow");
    });
  });
});
