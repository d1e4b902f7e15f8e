import { eip3009Abi } from "@coinslot/protocol";
import fc from "fast-check";
import { encodeFunctionData } from "viem";
import { expect, test } from "vitest";
import { splitSignature } from "../../evm/split-signature.ts";
import { anyAuthorization, anySignature } from "../../testing/arbitraries.ts";
import { encodeTransfer } from "./encode-transfer.ts";

const functionName = "transferWithAuthorization";

test("the calldata for a payer without code equals viem's", () => {
  fc.assert(
    fc.property(anyAuthorization, anySignature, (authorization, signature) => {
      const key = splitSignature(signature);
      const encode = () => encodeTransfer({ authorization, signature, payerHasCode: false });
      if (key === undefined) return void expect(encode()).toBeUndefined();
      const { from, to, value, validAfter, validBefore, nonce } = authorization;
      const { v, r, s } = key;
      const args = [from, to, value, validAfter, validBefore, nonce, v, r, s] as const;
      expect(encode()).toBe(encodeFunctionData({ abi: eip3009Abi, functionName, args }));
    }),
  );
});

test("the calldata for a payer with code equals viem's, with the signature unchanged", () => {
  fc.assert(
    fc.property(anyAuthorization, anySignature, (authorization, signature) => {
      const { from, to, value, validAfter, validBefore, nonce } = authorization;
      const args = [from, to, value, validAfter, validBefore, nonce, signature] as const;
      const expected = encodeFunctionData({ abi: eip3009Abi, functionName, args });
      expect(encodeTransfer({ authorization, signature, payerHasCode: true })).toBe(expected);
    }),
  );
});
