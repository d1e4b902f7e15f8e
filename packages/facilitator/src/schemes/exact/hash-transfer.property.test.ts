import { transferTypedData } from "@coinslot/protocol";
import fc from "fast-check";
import { bytesToHex, hashTypedData, domainSeparator as viemDomainSeparator } from "viem";
import { expect, test } from "vitest";
import { createDomainSeparatorCache, domainSeparator } from "../../evm/domain-separator.ts";
import { anyAddress, anyAuthorization } from "../../testing/arbitraries.ts";
import { hashTransfer } from "./hash-transfer.ts";

const anyToken = fc.record({
  asset: anyAddress,
  network: fc.integer({ min: 1 }).map((chainId) => `eip155:${chainId}` as const),
  // An empty name or version is refused before; viem would leave such a member out of the type.
  domain: fc.record({
    name: fc.string({ unit: "grapheme", minLength: 1 }),
    version: fc.string({ minLength: 1 }),
  }),
});

test("the digest of any transfer equals viem's", () => {
  const cached = createDomainSeparatorCache();
  fc.assert(
    fc.property(anyToken, anyAuthorization, (token, authorization) => {
      const expected = hashTypedData(transferTypedData({ ...token, authorization }));
      expect(bytesToHex(hashTransfer(cached(token), authorization))).toBe(expected);
      expect(bytesToHex(hashTransfer(cached(token), authorization))).toBe(expected);
    }),
  );
});

test("the separator of any domain equals viem's", () => {
  fc.assert(
    fc.property(anyToken, (token) => {
      const chainId = Number(token.network.slice("eip155:".length));
      const domain = { ...token.domain, chainId, verifyingContract: token.asset };
      expect(domainSeparator(token)).toBe(viemDomainSeparator({ domain }));
    }),
  );
});

test("the cache of domain separators is bounded", () => {
  const cached = createDomainSeparatorCache();
  const asset = "0xb8ce59fc3717ada4c02eadf9682a9e934f625ebb";
  const token = (version: number) =>
    ({
      asset,
      network: "eip155:9745",
      domain: { name: "USDT0", version: `${version}` },
    }) as const;
  for (let version = 0; version < 2_500; version++) {
    expect(cached(token(version))).toBe(domainSeparator(token(version)));
  }
});
