import { expect } from "vitest";
import { OutcomeUnclearError } from "../index.ts";
import type { PaidRequest, startSeller } from "./seller.ts";
import type { useWorld } from "./world.ts";

export type OnPaid = NonNullable<NonNullable<Parameters<typeof startSeller>[0]>["onPaid"]>;

/** Answers with a status this many times, then sells. */
export function firstAnswer(
  times: number,
  status: number,
  headers: Record<string, string> = {},
): OnPaid {
  return (_, response, count) => {
    if (count > times) return false;
    response.writeHead(status, headers).end();
    return true;
  };
}

/** Expectations about payments of the world's wallet. */
export function createExpectations(world: ReturnType<typeof useWorld>) {
  async function unclearOf(call: Promise<Response>): Promise<OutcomeUnclearError> {
    const error = await call.then(
      ({ status }) => new Error(`It was answered ${status}`),
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof OutcomeUnclearError)) throw error;
    expect(error.code).toBe("outcome_unclear");
    expect(error.moneyMayHaveMoved).toBe(true);
    expect(world.account().signatures()).toBe(1);
    return error;
  }

  /** All attempts carried the same payment with the same key. */
  function expectSamePayment(paid: readonly PaidRequest[], attempts: number): void {
    expect(paid).toHaveLength(attempts);
    const sent = paid.map(({ request, idempotencyKey }) => [
      request.headers["payment-signature"],
      idempotencyKey,
      request.body,
    ]);
    expect(new Set(sent.map((each) => JSON.stringify(each))).size).toBe(1);
    expect(world.account().signatures()).toBe(1);
  }

  return { unclearOf, expectSamePayment };
}
