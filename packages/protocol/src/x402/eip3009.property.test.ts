import fc from "fast-check";
import { concat, encodeAbiParameters, hashTypedData, keccak256, toBytes } from "viem";
import { expect, test } from "vitest";
import { toLowerHex } from "../money/address.ts";
import { chainIdOf, type Network } from "../money/network.ts";
import { address, authorization, network } from "../testing/arbitrary-messages.ts";
import type { Authorization } from "./authorization.ts";
import { type TokenDomain, transferTypedData } from "./eip3009.ts";

const domain: fc.Arbitrary<TokenDomain> = fc.record({
  name: fc.string({ unit: "grapheme", minLength: 1 }),
  version: fc.string({ unit: "grapheme", minLength: 1 }),
});

test("the signed digest equals the EIP-712 digest computed by hand", () => {
  fc.assert(
    fc.property(authorization, network, address, domain, (signed, chain, asset, token) => {
      const typedData = transferTypedData({
        authorization: signed,
        network: chain,
        asset,
        domain: token,
      });
      expect(hashTypedData(typedData)).toBe(digestByHand(signed, chain, toLowerHex(asset), token));
    }),
  );
});

function digestByHand(
  signed: Authorization,
  chain: Network,
  asset: `0x${string}`,
  token: TokenDomain,
): string {
  const hashOf = (text: string) => keccak256(toBytes(text));
  const domainSeparator = keccak256(
    encodeAbiParameters(
      [
        { type: "bytes32" },
        { type: "bytes32" },
        { type: "bytes32" },
        { type: "uint256" },
        { type: "address" },
      ],
      [
        hashOf(
          "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)",
        ),
        hashOf(token.name),
        hashOf(token.version),
        BigInt(chainIdOf(chain)),
        asset,
      ],
    ),
  );
  const structHash = keccak256(
    encodeAbiParameters(
      [
        { type: "bytes32" },
        { type: "address" },
        { type: "address" },
        { type: "uint256" },
        { type: "uint256" },
        { type: "uint256" },
        { type: "bytes32" },
      ],
      [
        hashOf(
          "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)",
        ),
        signed.from,
        signed.to,
        signed.value,
        signed.validAfter,
        signed.validBefore,
        signed.nonce,
      ],
    ),
  );
  return keccak256(concat(["0x1901", domainSeparator, structHash]));
}
