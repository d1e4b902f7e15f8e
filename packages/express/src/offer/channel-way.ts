import {
  type Address,
  type ChannelTerms,
  ConfigurationError,
  channelScheme,
  freezeMessage,
  type PaymentRequirements,
  toLowerHex,
} from "@coinslot/protocol";
import type { ChannelOptionTerms } from "../routes/read-channel-option.ts";
import type { OfferedWay } from "./offer.ts";

/** Deposit that is asked for, in prices, where the route names none: as the reference does. */
const pricesOfDeposit = 10n;

const versions = new Set([2] as const);

/**
 * The way to pay by a channel, as it is offered. Version 1 and MPP know none.
 *
 * @throws ConfigurationError where the facilitator signs no claims on the network
 */
export function channelWay(
  { withdrawDelay, minDeposit, former }: ChannelOptionTerms,
  offered: Omit<PaymentRequirements, "scheme"> & {
    receiverAuthorizer: Address | undefined;
    /** The facilitator executes none below it. */
    facilitatorMinDeposit: bigint | undefined;
  },
): OfferedWay {
  const { receiverAuthorizer, facilitatorMinDeposit = 0n, ...requirements } = offered;
  const { network, amount, asset, payTo } = requirements;
  if (receiverAuthorizer === undefined) {
    throw new ConfigurationError("The offer", [`No channels are served on ${network}`]);
  }
  const asked = minDeposit ?? BigInt(amount) * pricesOfDeposit;
  const terms: ChannelTerms = {
    receiver: toLowerHex(payTo),
    receiverAuthorizer: toLowerHex(receiverAuthorizer),
    token: toLowerHex(asset),
    withdrawDelay,
  };
  const earlier = former.map(
    (each): ChannelTerms => ({
      ...terms,
      receiver: each.payTo ?? terms.receiver,
      receiverAuthorizer: each.receiverAuthorizer ?? terms.receiverAuthorizer,
      withdrawDelay: each.withdrawDelay ?? withdrawDelay,
    }),
  );
  return {
    requirements: freezeMessage({
      scheme: channelScheme,
      ...requirements,
      extra: {
        ...requirements.extra,
        receiverAuthorizer,
        withdrawDelay,
        minDeposit: `${asked > facilitatorMinDeposit ? asked : facilitatorMinDeposit}`,
      },
    }),
    versions,
    mpp: false,
    channelTerms: [terms, ...earlier],
  };
}
