import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import { signIn } from "../../../console/src/testing/signed-in.ts";
import { send } from "../../../console/src/testing/visit-console.ts";
import {
  settled,
  useRefundingDevnet,
  withFloat,
} from "../../../facilitator/src/testing/refunding-devnet.ts";
import { engines } from "../../../facilitator/src/testing/settling-devnet.ts";
import { exitCode } from "../exit-code.ts";
import { runCoinslot } from "../testing/run-coinslot.ts";

const key = "k".repeat(32);

describe.each(engines)("coinslot console, on %s", (engine) => {
  const begin = useRefundingDevnet();

  it("refunds beside the seller that holds the ledger, and ends with Ctrl-C", async () => {
    const devnet = await begin(engine);
    const facilitator = await devnet.start(withFloat);
    const payment = await settled(facilitator, devnet);
    let answer: unknown;
    let origin = "";
    const { code, out, err } = await runCoinslot(["console", "--port", "0"], {
      env: { COINSLOT_LEDGER: devnet.ledger.url, COINSLOT_CONSOLE_KEY: key },
      interruptAfter: async (said) => {
        origin = /http:\S+\d/.exec(said)?.[0] ?? "";
        const browser = await signIn(origin, { key });
        const named = { "Idempotency-Key": "first-of-this-test" };
        answer = (await browser.run("refunds.create", { payment }, named)).json;
      },
    });
    expect(answer).toMatchObject({ payment, n: 1, amount: "1000" });
    expect((await facilitator.refunds.list()).refunds).toHaveLength(1);
    expect(out).toContain(`${origin}/#sign-in=`);
    expect(err).toContain("Stopped.");
    expect(code).toBe(exitCode.done);
    await expect(send(origin, { path: "/api/session" })).rejects.toThrow("ECONNREFUSED");
  });

  it("says which sign-in is possible, and that a seller that ended is gone", async () => {
    const devnet = await begin(engine);
    const facilitator = await devnet.start(withFloat);
    const payment = await settled(facilitator, devnet);
    let session: unknown;
    let refused: unknown;
    await runCoinslot(["console", "--port", "0"], {
      env: { COINSLOT_LEDGER: devnet.ledger.url, COINSLOT_CONSOLE_READER_KEY: key },
      interruptAfter: async (said) => {
        const origin = /http:\S+\d/.exec(said)?.[0] ?? "";
        const browser = await signIn(origin, { key });
        session = (await browser.send({ path: "/api/session" })).json;
        await facilitator.close();
        refused = (await browser.run("refunds.create", { payment }, {})).json;
      },
    });
    expect(session).toMatchObject({ role: "reader", signIn: { link: true, key: true } });
    expect(refused).toMatchObject({ code: "role_needed" });
  });
});

describe("coinslot console", () => {
  const env = { COINSLOT_OPERATOR_URL: "http://127.0.0.1:1", COINSLOT_OPERATOR_KEY: key };

  it("refuses a port in use, a short key, and another host without an origin", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as AddressInfo;
    for (const [args, more, message] of [
      [["--port", String(port)], {}, `Port ${port} is in use`],
      [["--port", "99999"], {}, "from 0 to 65535"],
      [["--port", "0"], { COINSLOT_CONSOLE_KEY: "short" }, "32 to 256"],
      [["--port", "0", "--host", "0.0.0.0"], {}, "origins is empty"],
      [["--port", "0", "--origin", "http://shop.example"], {}, "must be https://"],
    ] as const) {
      const { code, err } = await runCoinslot(["console", ...args], { env: { ...env, ...more } });
      expect(err).toContain(message);
      expect(code).toBe(exitCode.usage);
    }
  });

  it("names a seller over HTTP that does not answer", async () => {
    let answer: unknown;
    await runCoinslot(["console", "--port", "0"], {
      env: { ...env, COINSLOT_CONSOLE_KEY: key },
      interruptAfter: async (said) => {
        const browser = await signIn(/http:\S+\d/.exec(said)?.[0] ?? "", { key });
        answer = await browser.run("refunds.list");
      },
    });
    const { status, json } = z.object({ status: z.number(), json: z.unknown() }).parse(answer);
    expect({ status, json }).toMatchObject({ status: 503, json: { code: "seller_gone" } });
  });
});
