import { formatAmount, formatDecimal, shorten, spellAmount } from "@coinslot/pages/format";
import { useState } from "preact/hooks";
import { act } from "../api/act.ts";
import type { RefundRow } from "../api/operations.ts";
import { ActDialog } from "../parts/act-dialog.tsx";
import { networkName } from "../parts/format-parts.tsx";

type Name = "approve" | "paid" | "cancel";

/** Acts by the state of a refund. */
const actsOf: Readonly<Record<string, readonly Name[]>> = {
  scheduled: ["cancel"],
  waiting: ["cancel"],
  unsigned: ["cancel"],
  review: ["approve", "cancel"],
  blocked: ["approve", "cancel"],
  manual: ["paid", "cancel"],
};

/** Whether a refund's state has an act of the operator. */
export function hasActs({ state }: RefundRow): boolean {
  return actsOf[state] !== undefined;
}

const verbs: Readonly<Record<Name, string>> = {
  approve: "Approve",
  paid: "Name its transaction",
  cancel: "Cancel it",
};

/** An act on a refund that its operator is asked about. */
export interface AskedAct {
  name: Name;
  refund: RefundRow;
}

interface RefundActsProps {
  refund: RefundRow;
  onAsk: (asked: AskedAct) => void;
}

/** Buttons for a refund that waits for its operator. */
export function RefundActs({ refund, onAsk }: RefundActsProps) {
  return (
    <span class="actions">
      {(actsOf[refund.state] ?? []).map((name) => (
        <button key={name} type="button" onClick={() => onAsk({ name, refund })}>
          {verbs[name]}
        </button>
      ))}
    </span>
  );
}

interface RefundActDialogProps {
  asked: AskedAct;
  onClose: () => void;
}

/** Asks about an act. It belongs to the page: what was done takes its refund off the list. */
export function RefundActDialog({ asked: { name, refund }, onClose }: RefundActDialogProps) {
  const Asked = questions[name];
  return <Asked refund={refund} onClose={onClose} />;
}

interface AskedProps {
  refund: RefundRow;
  onClose: () => void;
}

function Approve({ refund, onClose }: AskedProps) {
  async function run(confirmation: string): Promise<string> {
    const { state } = await act(
      "refunds.approve",
      { id: refund.id },
      { subject: refund.id, confirmation },
    );
    return `The refund goes on: it is ${state} now.`;
  }
  return (
    <ActDialog title="Approve the refund" verb="Approve" run={run} onClose={onClose}>
      <p>
        Send <Sum refund={refund} />? It leaves the float account, and cannot be undone.
      </p>
      {refund.state === "review" && (
        <p class="notice">
          The receiver is a contract, or a wallet with code. Make sure that its owner can move the
          money.
        </p>
      )}
    </ActDialog>
  );
}

function Cancel({ refund, onClose }: AskedProps) {
  async function run(): Promise<string> {
    await act("refunds.cancel", { id: refund.id }, { subject: refund.id });
    return "The refund is cancelled. No money has moved.";
  }
  return (
    <ActDialog title="Cancel the refund" verb="Cancel the refund" run={run} onClose={onClose}>
      <p>
        Give up the refund of <Sum refund={refund} />? No money moves. Its payment serves no further
        request.
      </p>
    </ActDialog>
  );
}

function Paid({ refund, onClose }: AskedProps) {
  const [hash, setHash] = useState("");
  const transactionHash = /^0x[0-9a-f]{64}$/i.test(hash.trim()) ? hash.trim() : undefined;
  async function run(): Promise<string> {
    const argument = { id: refund.id, transactionHash: transactionHash ?? "" };
    const { state } = await act("refunds.paid", argument, {
      subject: Object.values(argument).join(),
    });
    return `The transaction pays the refund: it is ${state} now.`;
  }
  return (
    <ActDialog
      title="Name the refund's transaction"
      verb="Take it as the refund"
      isReady={transactionHash !== undefined}
      run={run}
      onClose={onClose}
    >
      <p>
        Has your own transaction sent <Sum refund={refund} />? The chain is asked, and nothing is
        sent.
      </p>
      <label>
        <span>Hash of the transaction</span>
        <input
          name="hash"
          autocomplete="off"
          spellcheck={false}
          required
          value={hash}
          onInput={({ currentTarget }) => setHash(currentTarget.value)}
        />
      </label>
    </ActDialog>
  );
}

const questions = { approve: Approve, paid: Paid, cancel: Cancel };

function Sum({ refund: { whole, amount, symbol, asset, payer, network } }: { refund: RefundRow }) {
  const money =
    whole === undefined || symbol === undefined ? (
      <strong>
        {formatAmount(amount, 0)} units of <code>{shorten(asset)}</code>
      </strong>
    ) : (
      <strong title={`${formatDecimal(whole)} ${symbol}`}>
        {spellAmount(whole)} {symbol}
      </strong>
    );
  return (
    <>
      {money} to <code title={payer}>{shorten(payer)}</code> on {networkName(network)}
    </>
  );
}
