import { formatAmount, shorten, spellAmount } from "@coinslot/pages/format";
import { useState } from "preact/hooks";
import { act } from "../api/act.ts";
import { ApiError } from "../api/api-error.ts";
import { readIntent } from "../api/intents.ts";
import type { PaymentRow, RefundRow, Timeline } from "../api/operations.ts";
import { decimalsOf, toUnits, toWhole } from "../parts/amounts.ts";
import { Confirmation } from "../parts/confirmation.tsx";
import { networkName, tokenName } from "../parts/format-parts.tsx";
import { Fault } from "../parts/states.tsx";

interface RefundFormProps {
  payment: PaymentRow;
  earlier: Timeline["refunds"];
  refundable: bigint;
  onCancel: () => void;
  onRefunded: (refund: RefundRow) => void;
}

/** Asks once, with the amount in words, and again where a part was given back before. */
export function RefundForm(props: RefundFormProps) {
  const { payment, earlier, refundable, onCancel, onRefunded } = props;
  const decimals = decimalsOf(payment) ?? 0;
  const [open, setOpen] = useState(() => readOpen(payment.id));
  const [typed, setTyped] = useState(() => toWhole(open?.amount ?? String(refundable), decimals));
  const [reason, setReason] = useState(open?.reason ?? "");
  const [confirmation, setConfirmation] = useState("");
  const [error, setError] = useState<ApiError>();
  const [isBusy, setIsBusy] = useState(false);

  const units = toUnits(typed, decimals);
  // One that is open may have happened: what is left says nothing of it.
  const isWithin = units !== undefined && (open !== undefined || units <= refundable);
  const amount = isWithin ? units : undefined;
  const token = tokenName(payment);
  const whole = (value: bigint) => formatAmount(value, decimals);

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    if (amount === undefined || isBusy) return;
    setIsBusy(true);
    const words = reason.trim();
    const argument = {
      payment: payment.id,
      amount: String(amount),
      ...(words === "" ? {} : { reason: words }),
    };
    try {
      onRefunded(await act("refunds.create", argument, { subject: payment.id, confirmation }));
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown;
      setError(thrown);
      setOpen(readOpen(payment.id));
    } finally {
      setIsBusy(false);
    }
  }

  return (
    <form class="form" onSubmit={(event) => void submit(event)}>
      <h2 id="refund-title">Refund</h2>
      <label>
        <span>Amount in {token}</span>
        <input
          class="figures"
          name="amount"
          inputMode="decimal"
          autocomplete="off"
          required
          readOnly={open !== undefined}
          value={typed}
          onInput={({ currentTarget }) => setTyped(currentTarget.value)}
        />
      </label>
      <label>
        <span>Reason, for your books</span>
        <input
          name="reason"
          dir="auto"
          maxLength={500}
          readOnly={open !== undefined}
          value={reason}
          onInput={({ currentTarget }) => setReason(currentTarget.value)}
        />
      </label>
      <Earlier refunds={earlier} whole={whole} token={token} isAsked={open === undefined} />
      <p role="status" data-testid="question">
        {open !== undefined ? (
          <>
            This refund was sent, and has had no answer. Asked again, it is the same refund: no more
            is given back.
          </>
        ) : amount === undefined ? (
          <span class="bad">
            At most {whole(refundable)} {token} can be given back.
          </span>
        ) : (
          <>
            Give back{" "}
            <strong>
              {spellAmount(toWhole(String(amount), decimals))} {token}
            </strong>{" "}
            to <code>{shorten(payment.payer)}</code> on {networkName(payment.network)}? It leaves
            the float account, and cannot be undone.
          </>
        )}
      </p>
      {error && <Fault error={error} />}
      <Confirmation error={error} value={confirmation} onInput={setConfirmation} />
      <div class="actions">
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
        <button type="submit" class="primary" disabled={isBusy || amount === undefined}>
          {open !== undefined
            ? "Ask again"
            : amount === undefined
              ? "Refund"
              : `Refund ${whole(amount)} ${token}${earlier.length > 0 ? " again" : ""}`}
        </button>
      </div>
    </form>
  );
}

interface EarlierProps {
  refunds: Timeline["refunds"];
  whole: (units: bigint) => string;
  token: string;
  isAsked: boolean;
}

/** A second refund is meant, and no repetition of the first. */
function Earlier({ refunds, whole, token, isAsked }: EarlierProps) {
  if (refunds.length === 0) return null;
  const sum = refunds.reduce((total, { value }) => total + BigInt(value), 0n);
  return (
    <p class="notice">
      <strong>
        Refunded already: {whole(sum)} {token}
      </strong>
      {refunds.length > 1 && `, in ${refunds.length} refunds`}.{isAsked && " Refund again?"}
    </p>
  );
}

/** The refund of this payment that this tab has sent, and whose answer is missing. */
function readOpen(payment: string): { amount: string; reason: string } | undefined {
  const intent = readIntent("refunds.create", payment);
  if (intent === undefined || !intent.isOpen) return undefined;
  const { amount, reason } = { amount: "", reason: "", ...Object(intent.argument) };
  return { amount: String(amount), reason: String(reason) };
}
