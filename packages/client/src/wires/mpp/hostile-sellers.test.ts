import { encodePaymentRequired, formatChallenge, headerName } from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import { OutcomeUnclearError, paymentOf, receiptOf } from "../../index.ts";
import {
  challengeOf,
  chargeOf,
  execute,
  type MppSeller,
  receiptFor,
  sellByMpp,
  startMppSeller,
} from "../../testing/mpp-seller.ts";
import { requirements } from "../../testing/seller.ts";
import { useWorld } from "../../testing/world.ts";

const world = useWorld();
const { keep, createFetch } = world;

type Change = Partial<Parameters<typeof startMppSeller>[0]>;

async function open(change: Change = {}): Promise<MppSeller> {
  return keep(await startMppSeller({ devnet: world.devnet(), ...change }));
}

function signatures(): number {
  return world.account().signatures();
}

describe("a hostile seller by MPP", () => {
  it.each(["1000", "99999"])(
    "a hostile seller by MPP that answers every payment with 402, at the price of %s, gets one signature",
    async (amount) => {
      const seller = await open({
        onPaid: (_paid, response) => {
          const challenge = formatChallenge(challengeOf({}, chargeOf({ amount })));
          response.writeHead(402, { [headerName.authenticate]: challenge });
          response.end('{"title":"Verification failed","detail":"Once more"}');
          return true;
        },
      });
      const response = await createFetch()(seller.url);
      expect(response.status).toBe(402);
      expect(paymentOf(response)).toMatchObject({ state: "rejected", reason: "Once more" });
      expect(seller.paid).toHaveLength(1);
      expect(signatures()).toBe(1);
    },
  );

  it("a hostile seller by MPP that gives parallel requests one challenge is asked for another, and both are bought", async () => {
    const first = formatChallenge(challengeOf());
    let onThird: () => void = () => undefined;
    const third = new Promise<void>((resolve) => {
      onThird = resolve;
    });
    const seller = await open({
      challenge: (count) => {
        if (count > 2) onThird();
        return count > 2 ? formatChallenge(challengeOf()) : first;
      },
      onPaid: async () => {
        await third;
        return false;
      },
    });
    const pay = createFetch();
    const responses = await Promise.all([pay(seller.url), pay(seller.url)]);
    expect(responses.map(({ status }) => status)).toEqual([200, 200]);
    expect(new Set(seller.paid.map(({ credential }) => credential.challenge.id)).size).toBe(2);
    expect(seller.unpaid).toHaveLength(3);
    expect(signatures()).toBe(2);
  });

  it.each([
    ["settled", true],
    ["open", false],
  ])(
    "a hostile seller by MPP that repeats the challenge of a payment that is %s is paid by x402",
    async (_state, isSold) => {
      const challenge = formatChallenge(challengeOf());
      const headers = {
        [headerName.paymentRequired]: encodePaymentRequired({
          x402Version: 2,
          resource: { url: "/paid" },
          accepts: [requirements()],
        }),
      };
      const seller = await open({
        headers,
        challenge: () => challenge,
        onPaid: (_paid, response) => {
          if (!isSold) response.writeHead(503).end();
          return !isSold;
        },
      });
      const sent: string[] = [];
      const pay = createFetch({
        protocols: ["mpp", "x402"],
        maxAttempts: 1,
        beforeSend: ({ header }) => {
          sent.push(header.name);
          if (header.name === headerName.paymentSignature) throw new Error("It is enough");
        },
      });
      const first = pay(seller.url);
      await (isSold ? first : expect(first).rejects.toThrow(OutcomeUnclearError));
      await expect(pay(seller.url)).rejects.toThrow("It is enough");
      expect(sent).toEqual([headerName.authorization, headerName.paymentSignature]);
      expect(seller.paid).toHaveLength(1);
    },
  );

  it.each([
    ["settled", true],
    ["open", false],
  ])(
    "a hostile seller by MPP that repeats the challenge of a payment that is %s gets no second signature",
    async (_state, isSold) => {
      const challenge = formatChallenge(challengeOf());
      const seller = await open({
        challenge: () => challenge,
        onPaid: (_paid, response) => {
          if (!isSold) response.writeHead(500).end();
          return !isSold;
        },
      });
      const pay = createFetch();
      await pay(seller.url);
      await expect(pay(seller.url)).rejects.toMatchObject({ code: "challenge_in_use" });
      expect(world.waits).toHaveLength(5);
      expect(signatures()).toBe(1);
    },
  );

  it.each([
    ["for another chain", { chainId: 1 }, true],
    ["for another challenge", { challengeId: "another" }, true],
    ["of another method", { method: "tempo" }, true],
    ["that the chain contradicts", {}, false],
  ])(
    "a hostile seller by MPP that sends a receipt %s is not believed",
    async (_case, change, isExecuted) => {
      const seller = await open({
        onPaid: async (paid, response) => {
          if (isExecuted) await execute(world.devnet(), paid);
          sellByMpp(response, paid, change);
          return true;
        },
      });
      const response = await createFetch()(seller.url);
      expect(response.status).toBe(200);
      expect(paymentOf(response)?.state).toBe("unclear");
      expect(receiptOf(response)).toBeUndefined();
      expect(signatures()).toBe(1);
    },
  );

  it("a hostile seller by MPP that sends a receipt beside a refusal is not believed, whatever the chain shows", async () => {
    const seller = await open({
      onPaid: (paid, response) => {
        response.setHeader(headerName.paymentReceipt, receiptFor(paid, {}));
        response.writeHead(409).end('{"error":"idempotency_key_in_use"}');
        return true;
      },
    });
    const response = await createFetch()(seller.url);
    expect(paymentOf(response)?.state).toBe("rejected");
    expect(receiptOf(response)).toBeUndefined();
  });

  it("a hostile seller by MPP whose receipt slow endpoints contradict holds up its buyer for ten seconds", async () => {
    const seller = await open({
      onPaid: (paid, response) => {
        sellByMpp(response, paid, {});
        return true;
      },
    });
    let now = Date.now();
    let waits = 0;
    const wait = async () => {
      waits += 1;
      now += 4_000;
    };
    const response = await createFetch({ now: () => now, wait })(seller.url);
    expect(paymentOf(response)?.state).toBe("unclear");
    expect(waits).toBeLessThanOrEqual(3);
  });

  it("a hostile seller by MPP that breaks off the body of a refusal has refused all the same", async () => {
    const seller = await open();
    const pay = createFetch({
      fetch: async (input, init) => {
        if (!new Headers(init?.headers).has(headerName.authorization)) return fetch(input, init);
        const body = new ReadableStream({ pull: (body) => body.error(new Error("It broke off")) });
        return new Response(body, { status: 402 });
      },
    });
    expect(paymentOf(await pay(seller.url))?.state).toBe("rejected");
    expect(world.states().filter((state) => state === "sent")).toHaveLength(1);
  });

  it("is believed with a receipt that names neither chain nor challenge, as the reference's", async () => {
    const seller = await open({
      onPaid: async (paid, response) => {
        const reference = await execute(world.devnet(), paid);
        sellByMpp(response, paid, { reference, chainId: undefined, challengeId: undefined });
        return true;
      },
    });
    expect(paymentOf(await createFetch()(seller.url))?.state).toBe("settled");
  });
});
