import { shorten } from "@coinslot/pages/format";
import type { ComponentChildren } from "preact";
import type { Comparison, Leg, RecordedBody } from "../src/cycles/cycle.ts";
import { Copy } from "./copy.tsx";

/** A request and its answer, decoded. */
export function LegView({ leg }: { leg: Leg }) {
  const { number, request, answer, payment, decoded, ways, refusal } = leg;
  const title = `${number}. ${request.method}${payment === undefined ? "" : " with a payment"}`;
  const ended = answer === undefined ? (leg.end ?? "under way") : `${answer.status}`;
  return (
    <section class="leg">
      <h3>
        {title}, {ended}
        {leg.key && <span class="soft"> {leg.key}</span>}
      </h3>
      {payment && payment.comparisons.length > 0 && (
        <Comparisons rows={payment.comparisons} number={number} />
      )}
      {refusal && (
        <p>
          The seller's reason: <code>{refusal.reason}</code> {refusal.says}
        </p>
      )}
      {ways.length > 0 && (
        <Scroll label={`Offers ${number}`}>
          <table>
            <caption>Offers</caption>
            <thead>
              <tr>
                <th scope="col">Wire</th>
                <th scope="col" class="money">
                  Price
                </th>
                <th scope="col">Network</th>
                <th scope="col">Token</th>
                <th scope="col">To</th>
                <th scope="col">Domain</th>
              </tr>
            </thead>
            <tbody>
              {ways.map((way, index) => (
                <tr key={index}>
                  <td>{way.wire}</td>
                  <td class="money">{way.price}</td>
                  <td>{way.network}</td>
                  <td>
                    <Copy text={way.asset} shown={shorten(way.asset)} label="Token" />
                  </td>
                  <td>
                    <Copy text={way.payTo} shown={shorten(way.payTo)} label="Recipient" />
                  </td>
                  <td>{way.domain ? `${way.domain.name}, ${way.domain.version}` : "not named"}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
      {decoded.map(({ header, side, wire, value, fault }, index) => (
        <details key={index}>
          <summary>
            {header} <span class="soft">{`${side}, ${wire}`}</span>
            {fault && <span class="bad"> {fault}</span>}
          </summary>
          {value !== undefined && (
            <Text
              text={JSON.stringify(value, null, 2)}
              label={`${header} ${number}.${index + 1}`}
            />
          )}
        </details>
      ))}
      <details>
        <summary>Request</summary>
        <Text
          text={`${request.method} ${request.target}\n${lines(request.headers)}`}
          label={`Request ${number}`}
        />
        <Body body={request.body} label={`Request body ${number}`} />
      </details>
      {answer && (
        <details>
          <summary>Answer</summary>
          <Text
            text={`${answer.status} ${answer.statusText}\n${lines(answer.headers)}`}
            label={`Answer ${number}`}
          />
          <Body body={answer.body} label={`Answer body ${number}`} />
        </details>
      )}
    </section>
  );
}

function Comparisons({ rows, number }: { rows: readonly Comparison[]; number: number }) {
  return (
    <Scroll label={`Payment beside the offer ${number}`}>
      <table>
        <caption>Payment beside the offer</caption>
        <thead>
          <tr>
            <th scope="col">Check</th>
            <th scope="col">Member</th>
            <th scope="col">Offered</th>
            <th scope="col">Presented</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ check, member, offered, presented, verdict, note }, index) => (
            <tr key={index} class={verdict}>
              <th scope="row">
                {verdict === "same" ? "✓" : verdict === "differs" ? "✗" : "?"} {check}
                <span class="aside">{verdict}</span>
              </th>
              <td>{member}</td>
              <td>
                <code>{offered}</code>
              </td>
              <td>
                <code>{presented}</code>
                {note && <div class="note">{note}</div>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function Body({ body, label }: { body: RecordedBody; label: string }) {
  if (body.bytes === 0) return <p class="soft">No body.</p>;
  if (body.text === undefined) return <p class="soft">{body.bytes} bytes, no text.</p>;
  return (
    <>
      <Text text={body.text} label={label} />
      {!body.isWhole && <p class="soft">The first part of {body.bytes} bytes.</p>}
    </>
  );
}

function Text({ text, label }: { text: string; label: string }) {
  return (
    <Scroll label={label}>
      <pre>{text}</pre>
    </Scroll>
  );
}

/** An area that scrolls on its own: by the keyboard, too. */
function Scroll({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without it, a keyboard cannot scroll it.
    <section class="scroll" tabIndex={0} aria-label={label}>
      {children}
    </section>
  );
}

function lines(headers: readonly (readonly [string, string])[]): string {
  return headers.map(([name, value]) => `${name}: ${value}`).join("\n");
}
