import fc from "fast-check";
import { encodeDeployData, zeroHash } from "viem";
import { expect, test } from "vitest";
import { simulator } from "../../contracts/simulator.generated.ts";
import { splitSignature } from "../evm/split-signature.ts";
import type { Claim } from "../schemes/scheme.ts";
import { anyAddress, anyAuthorization, anySignature } from "../testing/arbitraries.ts";
import { encodeDeploylessCall, roomForTransfers, sizeOf } from "./deployless-call.ts";

const anyTransfer = fc
  .record({ asset: anyAddress, authorization: anyAuthorization, signature: anySignature })
  .map(
    ({ asset, authorization, signature }): Claim => ({
      kind: "eip3009",
      id: {
        network: "eip155:9745",
        asset,
        payer: authorization.from,
        nonce: authorization.nonce,
      },
      authorization,
      signature,
    }),
  );

test("the init code of any transfers equals viem's", () => {
  fc.assert(
    fc.property(fc.array(anyTransfer, { minLength: 1, maxLength: 8 }), (transfers) => {
      const { data } = encodeDeploylessCall(transfers, 300_000n);
      const tuples = transfers.map(({ id, authorization, signature }) => {
        const key = splitSignature(signature);
        const isUsual = key !== undefined && signature.length === 132 && !/0[01]$/.test(signature);
        const { v = 0, r = zeroHash, s = zeroHash } = key ?? {};
        return {
          ...authorization,
          asset: id.asset,
          v,
          r,
          s,
          signature: isUsual ? "0x" : signature,
        } as const;
      });
      const frameGas = 300_000n + 300_000n / 63n + 250_000n;
      expect(data).toBe(encodeDeployData({ ...simulator, args: [tuples, 300_000n, frameGas] }));
    }),
  );
});

test("the predicted size of a transfer's init code is exact or larger", () => {
  fc.assert(
    fc.property(fc.array(anyTransfer, { minLength: 1, maxLength: 8 }), (transfers) => {
      const bytes = (encodeDeploylessCall(transfers, 300_000n).data.length - 2) / 2;
      const room = transfers.reduce((sum, transfer) => sum + sizeOf(transfer), 0);
      expect(bytes).toBeLessThanOrEqual(49_152 - roomForTransfers + room);
    }),
  );
});
