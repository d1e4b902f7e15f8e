import {
  createPayingFetch,
  OutcomeUnclearError,
  type PayingAccount,
  type PayingFetchOptions,
  paymentOf,
  receiptOf,
} from "@coinslot/client";
import { type Devnet, type Listening, listen, startDevnet } from "@coinslot/devnet";
import { paymentMiddleware } from "@coinslot/express";
import type { CoinslotFacilitator } from "@coinslot/facilitator";
import {
  decodeCredential,
  eip3009Abi,
  parseAuthorization,
  plasmaUsdt0,
  readAuthorizationPayload,
} from "@coinslot/protocol";
import express from "express";
import { evm, Mppx } from "mppx/server";
import { parseSignature } from "viem";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { balanceOf } from "../support/balance.ts";
import { createTestFacilitator, priceOfWeather, weatherPrice } from "../support/seller.ts";

let devnet: Devnet;
let facilitator: CoinslotFacilitator;
const opened: Listening[] = [];

beforeAll(async () => {
  devnet = await startDevnet({ chainId: 9745 });
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
  facilitator = createTestFacilitator(devnet);
  await facilitator.ready();
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

afterAll(async () => {
  await facilitator?.close();
  await devnet?.stop();
});

function buyer(change: Pick<PayingFetchOptions, "maxAttempts"> = {}) {
  const { network, rpcUrl, accounts } = devnet;
  const rpcUrls = { [network]: rpcUrl };
  let signatures = 0;
  const account: PayingAccount = {
    address: accounts.buyer.address,
    signTypedData: (data) => {
      signatures += 1;
      return accounts.buyer.signTypedData(data);
    },
  };
  const pay = createPayingFetch({ account, rpcUrls, protocols: ["mpp"], ...change });
  return { pay, signatures: () => signatures };
}

/** Our seller. It loses its first answers to payments. */
async function openOwn({ lost = 0 } = {}) {
  let runs = 0;
  let left = lost;
  const app = express();
  app.use((request, response, next) => {
    const isPaid = request.headers.authorization !== undefined;
    if (isPaid && left > 0) {
      left -= 1;
      response.end = () => response.destroy();
    }
    next();
  });
  const accepts = weatherPrice(devnet);
  const gate = paymentMiddleware(
    { "GET /weather": { accepts }, "GET /stream": { accepts, paymentFlow: "upfront" } },
    facilitator,
    { mpp: true },
  );
  app.use(gate);
  app.get(["/weather", "/stream"], (_request, response) => {
    runs += 1;
    response.json({ forecast: "sun" });
  });
  await gate.ready();
  const listening = await listen(app);
  opened.push(listening);
  return { ...listening, runs: () => runs };
}

/** The reference's seller, which settles on the devnet. */
async function openReference() {
  const { network, token, accounts, client } = devnet;
  const credentials: string[] = [];
  const { name, version, decimals } = plasmaUsdt0;
  const payment = Mppx.create({
    secretKey: "a-secret-of-a-test-with-32-bytes",
    methods: [
      evm.charge({
        chainId: Number(network.split(":")[1]),
        currency: token,
        decimals,
        authorization: { name, version },
        recipient: accounts.seller.address,
        async settle({ payload }) {
          const paid = readAuthorizationPayload({ payload });
          if (paid === undefined) throw new Error("No authorization");
          const { from, to, value, validAfter, validBefore, nonce } = parseAuthorization(
            paid.authorization,
          );
          const { r, s, yParity } = parseSignature(paid.signature);
          const hash = await client.writeContract({
            address: token,
            abi: eip3009Abi,
            functionName: "transferWithAuthorization",
            args: [from, to, value, validAfter, validBefore, nonce, 27 + yParity, r, s],
          });
          await client.waitForTransactionReceipt({ hash });
          return { reference: hash };
        },
      }),
    ],
  });
  const listening = await listen(async (request, response) => {
    const credential = request.headers.authorization;
    if (credential !== undefined) credentials.push(credential);
    const charge = payment.charge({ amount: "0.001" });
    const { status } = await Mppx.toNodeListener(charge)(request, response);
    if (status !== 402) response.end(JSON.stringify({ forecast: "sun" }));
  });
  opened.push(listening);
  return { ...listening, credentials };
}

function income(): Promise<bigint> {
  return balanceOf(devnet, devnet.accounts.seller.address);
}

describe("our client buys by MPP", () => {
  it.each(["/weather", "/stream"])(
    "our client buys by MPP from our seller, on %s, for exactly the price",
    async (path) => {
      const seller = await openOwn();
      const before = await income();
      const { pay, signatures } = buyer();
      const response = await pay(`${seller.url}${path}`);
      expect(await response.json()).toEqual({ forecast: "sun" });
      expect(paymentOf(response)).toMatchObject({ state: "settled", protocol: "mpp" });
      const { payments } = await facilitator.payments.list();
      const hashes = payments.map(({ inclusion }) => inclusion?.transactionHash);
      expect(hashes).toContain(receiptOf(response)?.transaction);
      expect((await income()) - before).toBe(priceOfWeather);
      expect([signatures(), seller.runs()]).toEqual([1, 1]);
    },
  );

  it("our client buys by MPP from our seller that loses its answer: once, and delivered by the same credential", async () => {
    const seller = await openOwn({ lost: 1 });
    const before = await income();
    const { pay, signatures } = buyer();
    const response = await pay(`${seller.url}/weather`);
    expect(await response.json()).toEqual({ forecast: "sun" });
    expect(paymentOf(response)?.state).toBe("settled");
    expect((await income()) - before).toBe(priceOfWeather);
    expect([signatures(), seller.runs()]).toEqual([1, 1]);
  });

  it("our client buys by MPP from our seller, resumed by a second client after the first one gave up", async () => {
    const seller = await openOwn({ lost: 1 });
    const before = await income();
    const first = buyer({ maxAttempts: 1 });
    const error = await first.pay(`${seller.url}/weather`).catch((thrown: unknown) => thrown);
    if (!(error instanceof OutcomeUnclearError)) throw error;
    const second = buyer();
    const kept = JSON.parse(JSON.stringify(error.payment));
    const response = await second.pay.resume(kept, `${seller.url}/weather`);
    expect(await response.json()).toEqual({ forecast: "sun" });
    expect(paymentOf(response)?.state).toBe("settled");
    expect((await income()) - before).toBe(priceOfWeather);
    expect([first.signatures(), second.signatures(), seller.runs()]).toEqual([1, 0, 1]);
  });

  it("our client buys by MPP from the reference's seller, whose receipt the chain proves", async () => {
    const seller = await openReference();
    const before = await income();
    const { pay, signatures } = buyer();
    const response = await pay(seller.url);
    expect(await response.json()).toEqual({ forecast: "sun" });
    expect(paymentOf(response)).toMatchObject({ state: "settled", protocol: "mpp" });
    expect(receiptOf(response)?.transaction).toMatch(/^0x[0-9a-f]{64}$/);
    expect((await income()) - before).toBe(priceOfWeather);
    expect(signatures()).toBe(1);
    const [credential = ""] = seller.credentials;
    expect(decodeCredential(credential).challenge.method).toBe("evm");
  });
});
