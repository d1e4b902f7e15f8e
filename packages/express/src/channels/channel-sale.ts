import type {
  Address,
  ChannelPayment,
  ChannelSales,
  ChannelState,
  ChannelTerms,
  Hex,
  PaymentRequirements,
  PresentedVoucher,
  ResourceInfo,
} from "@coinslot/protocol";
import type { Place } from "../load/load.ts";
import type { Offer } from "../offer/offer.ts";
import type { AnswerOwner } from "../replay/answer-memory.ts";
import type { AnswerSeal } from "../replay/answer-seal.ts";
import type { Visit } from "../sale.ts";
import type { ChannelWire, Presented } from "../wires/wire.ts";

/** A visit with a payment by a channel. */
export interface ChannelVisit extends Visit {
  offer: Offer;
  /** Its part of the load. */
  place: Place;
  presented: Presented;
  payment: ChannelPayment;
  wire: ChannelWire;
}

/** A payment by a channel for a part of the offer. */
export interface ChannelOrder extends ChannelVisit {
  channels: ChannelSales;
  requirements: PaymentRequirements;
  terms: readonly [ChannelTerms, ...ChannelTerms[]];
  voucher: PresentedVoucher;
  /** The account that signs the channel's vouchers. */
  signer: Address;
  /** The most that the request costs. */
  price: bigint;
  resource: ResourceInfo;
  limitKey: string;
}

/** Money that the request's payload has put into its channel. */
export interface DepositedMoney {
  /** Of any sender. */
  transaction: Hex;
  amount: bigint;
  /** The channel after it, before the request is charged. */
  channelState: ChannelState;
}

/** An order that may run its handler, or have its answer again. */
export interface ChannelSale extends ChannelOrder {
  /** Under the buyer's key, if there is one. */
  seal: AnswerSeal | undefined;
  /** Finds its answer in the memory of this process. */
  owner: AnswerOwner;
  progress: { hasRun: boolean };
  /** Absent where the payload brought none, or none was needed. */
  deposited?: DepositedMoney | undefined;
}

/** Name of a channel among authorizations, for kept answers. Of the signer, not of the payer. */
export function answerNameOf({
  requirements: { network },
  voucher: { channelConfig, voucher },
  signer,
}: Pick<ChannelOrder, "requirements" | "voucher" | "signer">): AnswerOwner["id"] {
  return { network, asset: channelConfig.token, payer: signer, nonce: voucher.channelId };
}
