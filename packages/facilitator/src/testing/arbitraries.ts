import { type Address, type Authorization, type Hex, toLowerHex } from "@coinslot/protocol";
import fc from "fast-check";
import { bytesToHex } from "viem";

const bytes = (length: number): fc.Arbitrary<Hex> =>
  fc.uint8Array({ minLength: length, maxLength: length }).map((value) => bytesToHex(value));

/** Any address, in lower case. */
export const anyAddress: fc.Arbitrary<Address> = bytes(20).map(toLowerHex);

/** Any 32 bytes, in lower case. */
export const anyBytes32: fc.Arbitrary<Hex> = bytes(32);

const uint256 = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n });

/** Any authorization that the ABI can express. */
export const anyAuthorization: fc.Arbitrary<Authorization> = fc.record({
  from: anyAddress,
  to: anyAddress,
  value: uint256,
  validAfter: uint256,
  validBefore: uint256,
  nonce: bytes(32),
});

/** Any bytes that a signature may be, those of a key's length more often. */
export const anySignature: fc.Arbitrary<Hex> = fc.oneof(
  fc.uint8Array({ maxLength: 300 }).map((value) => bytesToHex(value)),
  bytes(64),
  fc
    .tuple(bytes(31), bytes(31), fc.constantFrom("00", "01", "1b", "1c", "1d"))
    .map(([r, s, v]): Hex => `0x01${r.slice(2)}01${s.slice(2)}${v}`),
);
