import type { ServerResponse } from "node:http";
import { encodeReceipt, headerName, plasma } from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import { OutcomeUnclearError } from "../index.ts";
import { listen } from "../testing/listen.ts";
import { startSeller } from "../testing/seller.ts";
import { useWorld } from "../testing/world.ts";

const world = useWorld();
const { keep, createFetch } = world;

const refusal = encodeReceipt(
  { success: false, errorReason: "nonce_used", transaction: "", network: plasma },
  2,
);

type OnPaid = NonNullable<NonNullable<Parameters<typeof startSeller>[0]>["onPaid"]>;

describe("a payment that was sent", () => {
  it("may be executed although the caller aborts on an unreachable second address", async () => {
    const elsewhere = await listen((_, response) => void response.end());
    await elsewhere.close();
    const reason: unknown = await fetch(elsewhere.url).catch((error: unknown) => error);

    const controller = new AbortController();
    const onPaid = () => {
      controller.abort(reason);
      return true;
    };
    const seller = keep(await startSeller({ onPaid }));
    const call = createFetch()(seller.url, { signal: controller.signal });
    const error = await call.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(OutcomeUnclearError);
    expect(error).toMatchObject({ moneyMayHaveMoved: true, cause: reason });
    expect(world.states()).toEqual(["booked", "signed", "sent", "unclear"]);
  });

  it("is sent again although the body of a 503 has broken off", async () => {
    const onPaid: OnPaid = (_, response, count) => {
      if (count === 1) breakOff(response, 503);
      return count === 1;
    };
    const seller = keep(await startSeller({ onPaid }));
    expect((await createFetch({ fetch: logging })(seller.url)).status).toBe(200);
    expect(seller.paid).toHaveLength(2);
    expect(world.account().signatures()).toBe(1);
  });

  it("stays unclear although the body of the following refusal has broken off", async () => {
    const onPaid: OnPaid = (_, response, count) => {
      if (count === 1) response.writeHead(503).end();
      else breakOff(response, 402, { [headerName.paymentResponse]: refusal });
      return true;
    };
    const seller = keep(await startSeller({ onPaid }));
    const error = await createFetch({ fetch: logging })(seller.url).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(OutcomeUnclearError);
    expect(seller.paid).toHaveLength(2);
  });
});

/** Reads a copy of each answer before it returns it, like a logging fetch. */
async function logging(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const response = await fetch(input, init);
  await response
    .clone()
    .text()
    .catch(() => "It broke off");
  return response;
}

function breakOff(response: ServerResponse, status: number, headers: Record<string, string> = {}) {
  response.writeHead(status, { ...headers, "content-length": 100 });
  response.write("half", () => response.destroy());
}
