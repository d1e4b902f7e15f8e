import { addressSchema, amountSchema, bytes32Schema, networkSchema } from "@coinslot/protocol";
import * as z from "zod";
import { getPayment } from "../ledger/queries/list-payments.ts";
import { defineOperation } from "./operation.ts";
import { OperationRefusedError } from "./operation-refused-error.ts";

/** A payment's public terms, by its id in the ledger. */
export const getPaymentOperation = defineOperation({
  name: "payments.get",
  access: "read",
  argument: z.strictObject({ id: z.string().min(1).max(100) }),
  result: z.object({
    id: z.string(),
    state: z.string(),
    network: networkSchema,
    asset: addressSchema,
    payer: addressSchema,
    value: amountSchema.transform(BigInt),
    transactionHash: bytes32Schema.optional(),
    createdAt: z.number(),
    deliveredAt: z.number().optional(),
  }),
  async run(reads, { id }) {
    const payment = await getPayment(reads, id);
    if (payment === undefined) {
      throw new OperationRefusedError("unknown_payment", "The ledger has no payment with this id");
    }
    const { state, authorization, value, inclusion, createdAt, deliveredAt } = payment;
    const { network, asset, payer } = authorization;
    const { transactionHash } = inclusion ?? {};
    return {
      ...{ id, state, network, asset, payer, value: String(value) },
      ...{ transactionHash, createdAt, deliveredAt },
    };
  },
});
