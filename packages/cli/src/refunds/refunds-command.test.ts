import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createPayingFetch, refundNonce } from "@coinslot/client";
import { createTestDatabase, type Devnet, startDevnet } from "@coinslot/devnet";
import {
  type CoinslotFacilitator,
  createFacilitator,
  refundNonce as refundNonceOfLedger,
} from "@coinslot/facilitator";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { exitCode } from "../exit-code.ts";
import { inFolder, runCoinslot } from "../testing/run-coinslot.ts";
import { startTestSeller } from "../testing/test-seller.ts";

const floatKey = generatePrivateKey();
const float = privateKeyToAccount(floatKey);
const key = "k".repeat(32);
const boundSchema = z.object({ address: z.object({ port: z.number() }) });
const refundSchema = z.object({ id: z.string(), state: z.string() });

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet();
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 20_000_000n });
  await devnet.mint({ to: float.address, amount: 20_000_000n });
});
afterAll(() => devnet?.stop());

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** A seller whose float has its key elsewhere, and the id of a payment that it has settled. */
async function sell(engine: "sqlite" | "postgres", folder: string) {
  const database = engine === "postgres" ? await createTestDatabase() : undefined;
  if (database) ends.push(() => database.drop());
  const ledger = database?.url ?? `sqlite:${join(folder, "ledger.db")}`;
  const first = await startTestSeller({ devnet, ledger });
  const pay = createPayingFetch({
    account: devnet.accounts.buyer,
    rpcUrls: { [devnet.network]: devnet.rpcUrl },
  });
  expect((await pay(`${first.url}/weather`)).status).toBe(200);
  const { payments } = await first.facilitator.payments.list();
  await first.stop();
  const { facilitator, port } = await startFacilitator(ledger);
  const [payment] = payments;
  if (payment === undefined) throw new Error("Nothing was sold");
  const env =
    engine === "sqlite"
      ? { COINSLOT_LEDGER: ledger }
      : { COINSLOT_OPERATOR_URL: `http://127.0.0.1:${port}`, COINSLOT_OPERATOR_KEY: key };
  return { facilitator, payment, env, ledger };
}

async function startFacilitator(ledger: string) {
  let port = 0;
  const silent = () => undefined;
  const facilitator = createFacilitator({
    networks: [
      {
        network: devnet.network,
        rpcUrls: [devnet.rpcUrl],
        relayer: devnet.accounts.relayer,
        finalAfter: 2,
      },
    ],
    ledger,
    refunds: { address: float.address },
    operators: { port: 0, key },
    logger: {
      debug: silent,
      warn: silent,
      error: silent,
      info(fields) {
        port = boundSchema.safeParse(fields).data?.address.port ?? port;
      },
    },
  });
  await facilitator.ready();
  ends.push(() => facilitator.close());
  return { facilitator, port };
}

/** Mines until the refund is in this state. */
function becomes(facilitator: CoinslotFacilitator, id: string, state: string) {
  return vi.waitFor(
    async () => {
      await devnet.mine();
      expect(await facilitator.refunds.get(id)).toMatchObject({ state });
    },
    { timeout: 60_000, interval: 50 },
  );
}

describe.each(["sqlite", "postgres"] as const)("coinslot refunds, on %s", (engine) => {
  it("creates a refund, signs it without a network, submits and shows it", async () => {
    await inFolder(async (folder) => {
      const { facilitator, payment, env } = await sell(engine, folder);
      const run = (args: string[], options = {}) =>
        runCoinslot(["refunds", ...args], { env, folder, ...options });

      const declined = await run(["create", payment.id], { answer: false });
      expect(declined).toMatchObject({ code: exitCode.usage, questions: ["Give it back?"] });
      expect(declined.err).toContain("0.001 USDT0");
      expect(await run(["create", payment.id])).toMatchObject({ code: exitCode.usage });
      const create = [
        "create",
        payment.id,
        "--amount",
        "0.0006",
        "--key",
        "one",
        "--yes",
        "--json",
      ];
      const created = await run(create);
      expect(created.code).toBe(exitCode.done);
      const { id } = refundSchema.parse(JSON.parse(created.out));
      expect(refundSchema.parse(JSON.parse((await run(create)).out)).id).toBe(id);
      await becomes(facilitator, id, "unsigned");
      expect((await run(["show", id])).err).toContain("It waits for a signature");

      expect(await run(["export", "refunds.json"])).toMatchObject({
        code: exitCode.done,
        out: `1 refund of ${float.address.toLowerCase()} in refunds.json\n`,
      });
      expect((await run(["export", "refunds.json"])).code).toBe(exitCode.usage);

      // The other machine has a key, and nothing else.
      const offline = { env: { FLOAT_PRIVATE_KEY: floatKey }, folder };
      const signed = await runCoinslot(["refunds", "sign", "refunds.json"], {
        ...offline,
        answer: true,
      });
      expect(signed).toMatchObject({
        code: exitCode.done,
        out: "1 signed, in refunds.signed.json\n",
        questions: ["Sign it?"],
      });
      expect(signed.err).toMatch(/0\.0006 USDT0 +Plasma \(eip155:9745\) +0x/);
      expect(signed.err).toContain("In total 0.0006 USDT0 on Plasma (eip155:9745).");
      expect((await stat(join(folder, "refunds.signed.json"))).mode & 0o777).toBe(0o600);

      const submit = ["submit", "refunds.signed.json"];
      expect(await run(submit)).toMatchObject({ code: exitCode.done });
      expect(await run([...submit, "--json"])).toMatchObject({ code: exitCode.done });
      await becomes(facilitator, id, "final");
      const listed = await run(["list", "--payment", payment.id]);
      expect(listed.out).toMatch(/final +0\.0006 USDT0 +0x/);
      expect(listed.out).toContain("GET /weather");
      const json = await run(["list", "--payment", payment.id, "--json"]);
      expect(JSON.parse(json.out).refunds).toMatchObject([
        { route: "GET /weather", resource: "/weather" },
      ]);
      expect((await run(["list", "--state", "unsigned"])).err).toBe("No matching refunds.\n");
      const tooMuch = await run(["create", payment.id, "--amount", "0.0005", "--yes"]);
      expect(tooMuch).toMatchObject({ code: exitCode.failed, out: "" });
      expect(tooMuch.err).toContain("exceeds the 400 that are left");
    });
  }, 120_000);

  it("refuses a file that was changed, or signed by another key, and sends nothing", async () => {
    await inFolder(async (folder) => {
      const { facilitator, payment, env } = await sell(engine, folder);
      const run = (args: string[], options = {}) =>
        runCoinslot(["refunds", ...args], { env, folder, ...options });
      const created = await run(["create", payment.id, "--yes", "--json"]);
      const { id } = refundSchema.parse(JSON.parse(created.out));
      await becomes(facilitator, id, "unsigned");
      await run(["export", "refunds.json"]);
      const text = await readFile(join(folder, "refunds.json"), "utf8");
      const sign = (name: string, privateKey: string = floatKey) =>
        runCoinslot(["refunds", "sign", name, "--yes"], {
          env: { FLOAT_PRIVATE_KEY: privateKey },
          folder,
        });
      const other = generatePrivateKey();
      const wrongKey = await sign("refunds.json", other);
      expect(wrongKey.code).toBe(exitCode.usage);
      expect(wrongKey.err).toContain("are to be signed by");

      const { address } = privateKeyToAccount(other);
      for (const [name, changed, privateKey] of [
        ["amount", text.replace('"amount": "1000"', '"amount": "9000000"'), floatKey],
        ["payer", text.replace(payment.authorization.payer, address.toLowerCase()), floatKey],
        ["float", text.replace(float.address.toLowerCase(), address.toLowerCase()), other],
        ["ledger", text.replace(id, "0".repeat(32)), floatKey],
      ] as const) {
        expect(changed).not.toBe(text);
        await writeFile(join(folder, `${name}.json`), changed);
        expect(await sign(`${name}.json`, privateKey)).toMatchObject({ code: exitCode.done });
        const refused = await run(["submit", `${name}.signed.json`]);
        expect(refused).toMatchObject({ code: exitCode.failed, out: "" });
        expect(refused.err).toContain("1 of 1 refunds were refused");
      }
      expect(await facilitator.refunds.get(id)).toMatchObject({ state: "unsigned" });
      for (const name of ["refunds.json", "absent.json", "amount.json"]) {
        expect((await run(["submit", name])).code).toBe(exitCode.usage);
      }
      await writeFile(join(folder, "strange.json"), JSON.stringify({ refunds: [] }));
      expect((await sign("strange.json")).code).toBe(exitCode.usage);
      const { refunds } = JSON.parse(text);
      const twice = { ...JSON.parse(text), refunds: [...refunds, ...refunds] };
      await writeFile(join(folder, "twice.json"), JSON.stringify(twice));
      expect((await sign("twice.json")).err).toContain("The file names a refund twice.");
    });
  }, 120_000);
});

describe("coinslot refunds", () => {
  it("shows a signer hostile words of a file without steering its terminal", async () => {
    await inFolder(async (folder) => {
      const file = {
        format: "coinslot-refunds/1",
        float: float.address,
        refunds: [
          {
            id: "a",
            network: "eip155:31337",
            asset: devnet.token,
            domain: { name: "USDT0", version: "1" },
            payment: { payer: float.address, nonce: `0x${"1".repeat(64)}` },
            n: 1,
            amount: "5",
            validBefore: String(Math.floor(Date.now() / 1000) + 600),
            reason: "\u001b[2Jnothing",
          },
        ],
      };
      await writeFile(join(folder, "refunds.json"), JSON.stringify(file));
      const env = { FLOAT_PRIVATE_KEY: floatKey };
      const sign = ["refunds", "sign", "refunds.json"];
      const shown = await runCoinslot(sign, { env, folder, answer: false });
      expect(shown.code).toBe(exitCode.usage);
      expect(shown.err).not.toContain("\u001b");
      expect(shown.err).toContain(`5 units of ${devnet.token}`);
      expect((await runCoinslot(sign, { folder, answer: true })).code).toBe(exitCode.usage);
      const { refunds } = file;
      for (const [name, validBefore] of [
        ["over", "1"],
        ["far", String(2n ** 255n)],
      ]) {
        const changed = { ...file, refunds: refunds.map((each) => ({ ...each, validBefore })) };
        await writeFile(join(folder, `${name}.json`), JSON.stringify(changed));
        const refused = await runCoinslot(["refunds", "sign", `${name}.json`, "--yes"], {
          env,
          folder,
        });
        expect(refused).toMatchObject({ code: exitCode.usage, out: "" });
      }
    });
  });

  it("needs a running seller to export, and none to create", async () => {
    await inFolder(async (folder) => {
      const { facilitator, payment, env } = await sell("sqlite", folder);
      await facilitator.close();
      const run = (...args: string[]) => runCoinslot(["refunds", ...args], { env, folder });
      expect((await run("create", payment.id, "--yes")).out).toContain("scheduled");
      const exported = await run("export", "refunds.json");
      expect(exported).toMatchObject({ code: exitCode.failed });
      expect(exported.err).toContain("none serves its operator beside this ledger: start it");
    });
  }, 60_000);
});

it("buyer and seller derive the same nonce of a refund", () => {
  const payment = {
    network: "eip155:9745" as const,
    asset: "0xb8ce59fc3717ada4c02eadf9682a9e934f625ebb" as const,
    payer: "0x90f79bf6eb2c4f870365e785982e1f101e93b906" as const,
    nonce: `0x${"ab".repeat(32)}` as const,
  };
  for (const n of [1, 2, 16]) expect(refundNonce(payment, n)).toBe(refundNonceOfLedger(payment, n));
});
