import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPayingFetch } from "@coinslot/client";
import { createTestDatabase, type Devnet, startDevnet } from "@coinslot/devnet";
import { createFacilitator } from "@coinslot/facilitator";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { exitCode } from "../exit-code.ts";
import { runCoinslot } from "../testing/run-coinslot.ts";
import { startTestSeller } from "../testing/test-seller.ts";

const boundSchema = z.object({ address: z.object({ port: z.number() }) });
const silent = { debug() {}, info() {}, warn() {}, error() {} };

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet();
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 20_000_000n });
});
afterAll(() => devnet?.stop());

async function createLedger(engine: "sqlite" | "postgres") {
  if (engine === "postgres") return createTestDatabase();
  const folder = await mkdtemp(join(tmpdir(), "coinslot-cli-"));
  return { url: `sqlite:${folder}/ledger.db`, drop: () => rm(folder, { recursive: true }) };
}

describe.each(["sqlite", "postgres"] as const)("coinslot stop and start, on %s", (engine) => {
  it("stop new payments beside a seller, and without one, until they are started", async () => {
    const ledger = await createLedger(engine);
    const env = { COINSLOT_LEDGER: ledger.url };
    const run = (...args: string[]) => runCoinslot(args, { env });
    const sellAt = () => startTestSeller({ devnet, ledger: ledger.url });
    const pay = createPayingFetch({
      account: devnet.accounts.buyer,
      rpcUrls: { [devnet.network]: devnet.rpcUrl },
    });
    const buy = () => pay(`${seller.url}/weather`);
    let seller = await sellAt();
    try {
      const { network } = devnet;
      const stopped = await run("stop", "--network", network, "--reason", "back at noon");
      expect(stopped).toMatchObject({
        code: exitCode.done,
        out: `New payments on ${network} are stopped: back at noon\n`,
        err: "",
      });
      await expect.poll(() => seller.facilitator.stops.list()).toHaveLength(1);
      const refused = await buy();
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "60"]);
      expect(await refused.json()).toEqual({
        error: "payments_stopped",
        message: `New payments on ${network} are stopped: back at noon. Nothing was charged`,
        charged: false,
      });
      expect((await run("doctor")).out).toMatch(
        /warning +ledger +New payments on eip155:9745 are stopped since .* UTC: "back at noon"\. End it by coinslot start --network eip155:9745/,
      );
      await seller.stop();

      const route = await run("stop", "--route", "GET /weather");
      expect(route.out).toBe(
        "New payments of the route GET /weather are stopped: paused by the operator\n",
      );
      expect(route.err).toMatch(/^No payment of this ledger was for this route yet/);
      const started = await run("start", "--network", network);
      expect(started).toMatchObject({
        out: `New payments on ${network} are taken.\n`,
        err: "Still stopped: of the route GET /weather.\n",
      });
      seller = await sellAt();
      expect((await buy()).status).toBe(503);
      expect((await run("start", "--route", "GET /weather")).err).toBe("");
      await expect.poll(() => seller.facilitator.stops.list()).toEqual([]);
      expect((await buy()).status).toBe(200);

      const account = devnet.accounts.seller.address;
      const float = account.toLowerCase();
      expect(await run("stop", "--float", account, "--reason", "leaked")).toMatchObject({
        out: `New refunds of the float ${account} are stopped: leaked\n`,
        err: "No refund of this ledger was paid from this float yet: is its address right?\n",
      });
      await expect.poll(() => seller.facilitator.stops.list()).toMatchObject([{ name: float }]);
      expect((await run("doctor")).out).toMatch(
        new RegExp(`New refunds of the float ${float} are .* coinslot start --float ${float}`),
      );
      expect((await buy()).status).toBe(200);
      expect((await run("start", "--float", account)).out).toBe(
        `New refunds of the float ${account} are paid.\n`,
      );
      await expect.poll(() => seller.facilitator.stops.list()).toEqual([]);
    } finally {
      await seller.stop();
      await ledger.drop();
    }
  });
});

describe("coinslot stop over HTTP", () => {
  it("asks the seller that the environment names, with its key", async () => {
    const ledger = await createLedger("postgres");
    const key = "k".repeat(32);
    const ports: number[] = [];
    const facilitator = createFacilitator({
      networks: [
        {
          network: devnet.network,
          rpcUrls: [devnet.rpcUrl],
          relayer: devnet.accounts.relayer,
        },
      ],
      ledger: ledger.url,
      operators: { port: 0, key },
      logger: {
        ...silent,
        info: (fields) => {
          const bound = boundSchema.safeParse(fields);
          if (bound.success) ports.push(bound.data.address.port);
        },
      },
    });
    try {
      await facilitator.ready();
      const url = `http://127.0.0.1:${ports[0]}`;
      const env = { COINSLOT_OPERATOR_URL: url, COINSLOT_OPERATOR_KEY: key };
      const stop = ["stop", "--network", devnet.network];
      expect(await runCoinslot(stop, { env })).toMatchObject({ code: exitCode.done, err: "" });
      expect(facilitator.stops.list()).toMatchObject([{ name: devnet.network }]);
      const wrong = { ...env, COINSLOT_OPERATOR_KEY: "w".repeat(32) };
      expect(await runCoinslot(["start", ...stop.slice(1)], { env: wrong })).toMatchObject({
        code: exitCode.failed,
        err: "error: The seller does not accept this key.\n",
      });
      expect(facilitator.stops.list()).toHaveLength(1);
      const values = { COINSLOT_OPERATOR_URL: url, COINSLOT_OPERATOR_KEY_FILE: "/etc/hostname" };
      const file = { path: "/tmp/.env", isOfFolder: true, values };
      const hostile = await runCoinslot(stop, { env: values, file });
      expect(hostile).toMatchObject({ code: exitCode.usage });
      expect(hostile.err).toContain("is not taken from a folder's .env file");
      const keyless = { COINSLOT_OPERATOR_URL: url };
      const open = { ...env, COINSLOT_OPERATOR_URL: "http://192.0.2.1:4030" };
      for (const bad of [keyless, open]) {
        expect((await runCoinslot(stop, { env: bad })).code).toBe(exitCode.usage);
      }
    } finally {
      await facilitator.close();
      await ledger.drop();
    }
  });
});

describe("coinslot stop", () => {
  it("needs a network or a route, and a ledger that exists", async () => {
    const env = { COINSLOT_LEDGER: "sqlite:./absent.db" };
    const absent = await runCoinslot(["stop", "--network", "eip155:9745"], { env });
    expect(absent).toMatchObject({ code: exitCode.usage });
    expect(absent.err).toMatch(/does not exist yet/);
    const misspelt = await runCoinslot(["stop", "--network", "plasma"], { env });
    expect(misspelt).toMatchObject({ code: exitCode.usage });
    expect(misspelt.err).toMatch(/eip155:9745/);
  });
});
