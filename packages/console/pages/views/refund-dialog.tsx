import { formatDecimal, shorten } from "@coinslot/pages/format";
import { useEffect, useRef, useState } from "preact/hooks";
import type { PaymentRow, RefundRow, Timeline } from "../api/operations.ts";
import { decimalsOf, toWhole } from "../parts/amounts.ts";
import { State, tokenName } from "../parts/format-parts.tsx";
import { RefundForm } from "./refund-form.tsx";

interface RefundDialogProps {
  payment: PaymentRow;
  /** Refunds of the payment that have given money back, or will. */
  earlier: Timeline["refunds"];
  /** The amount that they leave, in the smallest unit. */
  refundable: bigint;
  onClose: () => void;
}

/** Asks for a refund's amount and reason, and says what was begun. */
export function RefundDialog({ onClose, ...terms }: RefundDialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [done, setDone] = useState<RefundRow>();
  useEffect(() => dialog.current?.showModal(), []);
  const close = () => dialog.current?.close();

  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="refund-title">
      {done === undefined ? (
        <RefundForm {...terms} onCancel={close} onRefunded={setDone} />
      ) : (
        <Begun refund={done} payment={terms.payment} onClose={close} />
      )}
    </dialog>
  );
}

interface BegunProps {
  refund: RefundRow;
  payment: PaymentRow;
  onClose: () => void;
}

function Begun({ refund, payment, onClose }: BegunProps) {
  const amount = formatDecimal(toWhole(refund.amount, decimalsOf(payment) ?? 0));
  return (
    <div class="form">
      <h2 id="refund-title">Refund begun</h2>
      <p role="status">
        {amount} {tokenName(payment)} to <code>{shorten(refund.payer)}</code>:{" "}
        <State state={refund.state} />
      </p>
      <p class="soft">
        Refund <code>{refund.id}</code>. This page follows it.
      </p>
      <div class="actions">
        <button type="button" class="primary" onClick={onClose}>
          Done
        </button>
      </div>
    </div>
  );
}
