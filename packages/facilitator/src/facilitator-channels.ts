import { type ChannelSales, FacilitatorError } from "@coinslot/protocol";
import { minDepositWorthGas } from "./channels/channel-settings.ts";
import { type FacilitatorContext, forBuyer } from "./facilitator-context.ts";

/** Sales by channels of a facilitator; `undefined` where none are configured. */
export function channelsOf(facilitator: FacilitatorContext): ChannelSales | undefined {
  const { channels } = facilitator.configuration;
  const authorizer = channels?.signers[0]?.address;
  if (authorizer === undefined) return undefined;
  return {
    authorizerOf: (network) => (channels?.networks.has(network) ? authorizer : undefined),
    minDepositOf: (network) =>
      channels?.networks.has(network) ? minDepositWorthGas(channels) : undefined,
    check(...request) {
      const { sales } = facilitator.channels;
      if (sales !== undefined) return sales.check(...request);
      throw new FacilitatorError("The facilitator is not ready", { kind: "unavailable" });
    },
    admit: (request) => withSales(facilitator, (sales) => sales.admit(request)),
    deposit: (request) =>
      forBuyer(facilitator, async ({ channels: running }) => {
        const outcome = await running?.sales.deposit?.(request);
        if (outcome !== undefined) return outcome;
        throw new FacilitatorError("No deposits are executed", { kind: "unavailable" });
      }),
    refund: (request) => withSales(facilitator, (sales) => sales.refund(request)),
  };
}

function withSales<Result>(
  facilitator: FacilitatorContext,
  work: (sales: ChannelSales) => Promise<Result>,
): Promise<Result> {
  return forBuyer(facilitator, async ({ channels: running }) => {
    if (running !== undefined) return work(running.sales);
    throw new FacilitatorError("No channels are served", { kind: "unavailable" });
  });
}
