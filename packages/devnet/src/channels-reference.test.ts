import { channelConfigSchema } from "@coinslot/protocol";
import { x402Facilitator } from "@x402/core/facilitator";
import type { PaymentPayload } from "@x402/core/types";
import { BatchSettlementEvmScheme as ReferenceClient } from "@x402/evm/batch-settlement/client";
import { BatchSettlementEvmScheme as ReferenceFacilitator } from "@x402/evm/batch-settlement/facilitator";
import type { Hex } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { type ChannelFixture, type ClaimRow, createChannelFixture } from "./channel-fixture.ts";
import { type Devnet, startDevnet } from "./devnet.ts";
import { placeChannels } from "./place-channels.ts";
import { createReferenceSigner } from "./reference-facilitator.ts";

const signedSchema = z.object({
  type: z.string(),
  channelConfig: channelConfigSchema,
  voucher: z.object({
    maxClaimableAmount: z.string().transform(BigInt),
    signature: z.templateLiteral(["0x", z.string()]),
  }),
});

let devnet: Devnet;
let channels: ChannelFixture;
let facilitator: x402Facilitator;

beforeAll(async () => {
  devnet = await startDevnet();
  await placeChannels(devnet);
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
  channels = createChannelFixture(devnet);
  const signer = createReferenceSigner(devnet, devnet.accounts.relayer);
  facilitator = new x402Facilitator().register(devnet.network, new ReferenceFacilitator(signer));
});
afterAll(() => devnet?.stop());

describe("the released packages of the reference, with this escrow", () => {
  /** Terms of a sale; the receiver's authorizer is that of the fixture. */
  const requirements = () => ({
    scheme: "batch-settlement",
    network: devnet.network,
    amount: "1000",
    asset: devnet.token,
    payTo: devnet.accounts.seller.address,
    maxTimeoutSeconds: 60,
    extra: {
      name: "USDT0",
      version: "1",
      receiverAuthorizer: devnet.accounts.deployer.address,
      withdrawDelay: 900,
      minDeposit: "10000",
    },
  });

  const envelope = (payload: Record<string, unknown>): PaymentPayload => ({
    x402Version: 2,
    accepted: requirements(),
    payload,
  });

  /** A claim in the wire form, signed by our typed data. */
  async function claimPayload(row: ClaimRow) {
    const { voucher, signature, totalClaimed } = row;
    return {
      claims: [
        {
          voucher: { ...voucher, maxClaimableAmount: `${voucher.maxClaimableAmount}` },
          signature,
          totalClaimed: `${totalClaimed}`,
        },
      ],
      claimAuthorizerSignature: await channels.signBatch([row]),
    };
  }

  it("deposit, pay by voucher, claim, settle and refund", async () => {
    const { buyer, seller } = devnet.accounts;
    const client = new ReferenceClient({
      address: buyer.address,
      signTypedData: (data) =>
        buyer.signTypedData(data as Parameters<typeof buyer.signTypedData>[0]),
      readContract: (call) =>
        devnet.client.readContract(call as Parameters<typeof devnet.client.readContract>[0]),
    });

    const { payload: deposit } = await client.createPaymentPayload(2, requirements());
    expect(await facilitator.verify(envelope(deposit), requirements())).toMatchObject({
      isValid: true,
    });
    const deposited = await facilitator.settle(envelope(deposit), requirements());
    expect(deposited).toMatchObject({ success: true, amount: "10000" });

    const signed = signedSchema.parse(deposit);
    const config = signed.channelConfig;
    expect(await channels.stateOf(config)).toMatchObject({ balance: 10_000n, totalClaimed: 0n });
    const voucher = {
      channelId: channels.idOf(config),
      maxClaimableAmount: "2000",
      signature: await channels.signVoucher(config, 2000n),
    };
    const paid = { type: "voucher", channelConfig: config, voucher };
    expect(await facilitator.verify(envelope(paid), requirements())).toMatchObject({
      isValid: true,
      extra: { channelId: voucher.channelId, balance: "10000" },
    });

    const row = await channels.rowOf(config, 2000n, { totalClaimed: 1500n });
    const claim = { type: "claim", ...(await claimPayload(row)) };
    expect(await facilitator.settle(envelope(claim), requirements())).toMatchObject({
      success: true,
    });
    expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: 1500n });

    const settle = { type: "settle", receiver: seller.address, token: devnet.token };
    expect(await facilitator.settle(envelope(settle), requirements())).toMatchObject({
      success: true,
      amount: "1500",
    });

    const rest = await channels.rowOf(config, 2000n);
    const refund = {
      type: "refund",
      channelConfig: config,
      voucher,
      amount: "100",
      refundNonce: "0",
      ...(await claimPayload(rest)),
      refundAuthorizerSignature: await channels.signRefund(config, 100n, 0n),
    };
    expect(await facilitator.settle(envelope(refund), requirements())).toMatchObject({
      success: true,
      amount: "100",
    });
    expect(await channels.stateOf(config)).toMatchObject({
      balance: 9_900n,
      totalClaimed: 2_000n,
      refundNonce: 1n,
    });
  });

  it("refuse what the escrow refuses: a forged voucher, one above the balance, a foreign channel", async () => {
    const { relayer } = devnet.accounts;
    const config = channels.configOf();
    await channels.deposit(config, 10_000n);
    const verify = async (ceiling: bigint, signature: Hex) => {
      const voucher = {
        channelId: channels.idOf(config),
        maxClaimableAmount: `${ceiling}`,
        signature,
      };
      const payload = { type: "voucher", channelConfig: config, voucher };
      return facilitator.verify(envelope(payload), requirements());
    };
    expect(await verify(1n, await channels.signVoucher(config, 1n))).toMatchObject({
      isValid: true,
    });
    expect(await verify(1n, await channels.signVoucher(config, 1n, relayer))).toMatchObject({
      isValid: false,
      invalidReason: "invalid_batch_settlement_evm_voucher_signature",
    });
    expect(await verify(10_001n, await channels.signVoucher(config, 10_001n))).toMatchObject({
      isValid: false,
      invalidReason: "invalid_batch_settlement_evm_cumulative_exceeds_balance",
    });
  });
});
