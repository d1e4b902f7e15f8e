import { FacilitatorError, type HostedChannels } from "@coinslot/protocol";
import { isNodeFault } from "./channels/hosted/node-fault.ts";
import type { RunningHostedChannels } from "./channels/hosted/start-hosted-channels.ts";
import { type FacilitatorContext, forBuyer } from "./facilitator-context.ts";

/** Channels of a facilitator for callers; `undefined` where none are configured. */
export function hostedChannelsOf(facilitator: FacilitatorContext): HostedChannels | undefined {
  if (facilitator.configuration.hostedChannels === undefined) return undefined;
  return {
    verify: (message, asker) => withHosted(facilitator, (hosted) => hosted.verify(message, asker)),
    settle: (message, asker) => withHosted(facilitator, (hosted) => hosted.settle(message, asker)),
  };
}

function withHosted<Result>(
  facilitator: FacilitatorContext,
  work: (hosted: RunningHostedChannels) => Promise<Result>,
): Promise<Result> {
  return forBuyer(facilitator, async ({ hostedChannels }) => {
    if (hostedChannels === undefined) {
      throw new FacilitatorError("No channels are served", { kind: "unavailable" });
    }
    try {
      return await work(hostedChannels);
    } catch (cause) {
      if (!isNodeFault(cause)) throw cause;
      throw new FacilitatorError("The chain cannot be read at the moment", {
        kind: "unavailable",
        cause,
      });
    }
  });
}
