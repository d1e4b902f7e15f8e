import { OperationRefusedError, type Operator } from "@coinslot/facilitator";
import { expect, it } from "vitest";
import { sizeOfRefund } from "./refund-size.ts";

const usdt0 = "0xb8ce59fc3717ada4c02eadf9682a9e934f625ebb";
const payer = `0x${"12".repeat(20)}`;

/** A seller elsewhere: its refunds are of 250 tokens each. */
const sellerWith = (refusal: OperationRefusedError): Operator => ({
  async run(operation, argument) {
    const { id } = { id: "", ...Object(argument) };
    if (!id.startsWith("known")) throw refusal;
    return operation.result.parse({
      ...{ id, payment: "a1", n: 1, network: "eip155:9745", asset: usdt0, payer },
      ...{ amount: "250000000", state: "unsigned", origin: "operator" },
      ...{ nonce: `0x${"00".repeat(32)}`, createdAt: 0 },
    });
  },
});
const file = {
  refunds: [{ id: "known 1", amount: "1" }, { id: "known 2", amount: "1" }, { id: "?" }],
};

it("measures an import by the ledger's amounts, and not by those of its file", async () => {
  const operator = sellerWith(new OperationRefusedError("unknown_refund", "Unknown"));
  expect(await sizeOfRefund(operator, "refunds.import", file)).toEqual({
    micros: 500_000_000n,
    words: `2 refunds of 500 tokens together: of 250 USDT0 on Plasma to ${payer} for the payment a1; of 250 USDT0 on Plasma to ${payer} for the payment a1`,
  });
});

it("takes no refusal of the seller for a refund that is unknown", async () => {
  const refusal = new OperationRefusedError("too_many_wrong_keys", "Wait");
  const size = sizeOfRefund(sellerWith(refusal), "refunds.import", file);
  await expect(size).rejects.toThrow(refusal);
});
