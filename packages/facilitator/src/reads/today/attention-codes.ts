/** Severity, by the time that a person has. */
type Urgency = "critical" | "warning" | "notice";

/**
 * Everything that needs a person, with the runbook: a page of `docs/`, and its anchor. The order is
 * that of urgency.
 */
export const attentionCodes = {
  ledger_failing: { urgency: "critical", runbook: "operating.md#the-database-is-away" },
  final_reorganised: {
    urgency: "critical",
    runbook: "operating.md#final-payments-were-reorganised",
  },
  relayer_exhausted: { urgency: "critical", runbook: "operating.md#gas-money-runs-out" },
  chain_stalled: { urgency: "critical", runbook: "operating.md#a-chain-stalls" },
  signer_failing: { urgency: "critical", runbook: "operating.md#keys-elsewhere" },
  transaction_stuck: { urgency: "critical", runbook: "operating.md#a-chain-stalls" },
  queue_stuck: { urgency: "critical", runbook: "operating.md#a-chain-stalls" },
  disk_nearly_full: { urgency: "critical", runbook: "operating.md#keep-a-ledger" },
  channels_deadline: {
    urgency: "critical",
    runbook: "operating.md#a-payer-withdraws-from-its-channel",
  },
  channels_unwatched: { urgency: "critical", runbook: "operating.md#channels-are-not-watched" },
  relayer_low: { urgency: "warning", runbook: "operating.md#gas-money-runs-out" },
  relayer_keyless: { urgency: "warning", runbook: "operating.md#rotate-the-relayer" },
  channels_refused: { urgency: "warning", runbook: "operating.md#a-channel-cannot-be-claimed" },
  endpoint_failing: { urgency: "warning", runbook: "operating.md#a-chain-stalls" },
  float_low: { urgency: "warning", runbook: "refunding.md#1-name-a-float" },
  refunds_review: { urgency: "warning", runbook: "refunding.md#3-follow-it" },
  refunds_unsigned: {
    urgency: "warning",
    runbook: "refunding.md#4-keep-the-floats-key-elsewhere",
  },
  refunds_blocked: { urgency: "warning", runbook: "refunding.md#3-follow-it" },
  refunds_manual: { urgency: "warning", runbook: "refunding.md#5-send-it-yourself" },
  refunds_late: { urgency: "warning", runbook: "refunding.md#3-follow-it" },
  webhooks_late: { urgency: "warning", runbook: "operating.md#alerts" },
  webhooks_dead: { urgency: "warning", runbook: "webhooks.md#dead-letters-and-replay" },
  payments_stopped: { urgency: "notice", runbook: "operating.md#stop-selling" },
  refunds_stopped: { urgency: "notice", runbook: "operating.md#stop-selling" },
  refunds_limited: { urgency: "notice", runbook: "refunding.md#6-bound-the-policy-of-a-route" },
  books_unclosed: { urgency: "notice", runbook: "close-the-month.md" },
} as const satisfies Record<string, { urgency: Urgency; runbook: string }>;

export type AttentionCode = keyof typeof attentionCodes;
