import { channelIdOf, voucherTypedData } from "@coinslot/protocol";
import fc from "fast-check";
import { bytesToHex, hashTypedData } from "viem";
import { expect, test } from "vitest";
import { anyAddress, anyBytes32 } from "../../testing/arbitraries.ts";
import { createChannelDigests } from "./channel-digests.ts";

const anyConfig = fc.record({
  payer: anyAddress,
  payerAuthorizer: anyAddress,
  receiver: anyAddress,
  receiverAuthorizer: anyAddress,
  token: anyAddress,
  withdrawDelay: fc.nat({ max: 2 ** 40 - 1 }),
  salt: anyBytes32,
});

const anyPlace = fc
  .tuple(fc.integer({ min: 1, max: 2 ** 31 }), fc.option(anyAddress, { nil: undefined }))
  .map(([chainId, contract]) => ({ network: `eip155:${chainId}` as const, contract }));

test("ids of channels and digests of vouchers are those of viem", () => {
  fc.assert(
    fc.property(
      anyPlace,
      anyConfig,
      anyConfig,
      fc.bigInt({ min: 0n, max: 2n ** 128n - 1n }),
      (place, config, other, maxClaimableAmount) => {
        const digests = createChannelDigests(place);
        const channelId = digests.channelIdOf(config);
        expect(channelId).toBe(channelIdOf(config, place));
        const digest = digests.voucherDigest(channelId, maxClaimableAmount);
        const data = voucherTypedData({ channelId, maxClaimableAmount }, place);
        // Its buffers are used again: an earlier result must survive.
        expect(digests.channelIdOf(other)).toBe(channelIdOf(other, place));
        digests.voucherDigest(digests.channelIdOf(other), 1n);
        expect(bytesToHex(digest)).toBe(hashTypedData(data));
      },
    ),
  );
});
