import type { BeforeHook } from "@coinslot/facilitator";
import { type Address, toLowerHex } from "@coinslot/protocol";

/** Refuses payments that go elsewhere: gas is paid for the operator's own sellers alone. */
export function createRecipientRule(payTo: readonly Address[]): BeforeHook {
  const allowed: ReadonlySet<string> = new Set(payTo.map(toLowerHex));
  return function refuseOtherRecipients({ requirements }) {
    if (allowed.has(requirements.payTo.toLowerCase())) return undefined;
    return {
      abort: true,
      reason: "recipient_not_allowed",
      message: "This facilitator does not settle payments to this recipient.",
    };
  };
}
