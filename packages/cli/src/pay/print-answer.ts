import type { PaymentOutcome } from "@coinslot/client";
import { formatJson } from "../terminal.ts";
import { boundedBody } from "./bounded-body.ts";
import { writing } from "./output-error.ts";
import type { PayContext } from "./pay-context.ts";
import { printBody } from "./print-body.ts";
import { printOnTerminal } from "./print-on-terminal.ts";

/**
 * Prints the body of an answer, or with `--json` all of it.
 *
 * @throws OutputError when it cannot be written; else the error of reading the body
 */
export async function printAnswer(
  context: PayContext,
  { response, outcome }: { response: Response; outcome: PaymentOutcome | undefined },
): Promise<void> {
  const { isJson, io } = context;
  const chunks = readBody(response);
  if (isJson) return printJson(context, { response, outcome, chunks });
  if (!io.isTerminal) return printBody(context, chunks);
  const name = `coinslot-answer-${outcome?.payment.terms.nonce.slice(2, 18) ?? Date.now()}.bin`;
  await printOnTerminal(context, { chunks, name });
}

/** A paid body may be long and slow; a refusal may not. */
async function* readBody({ status, body }: Response): AsyncGenerator<Uint8Array> {
  if (body === null) return;
  yield* status === 402 ? boundedBody(body) : body;
}

async function printJson(
  { io }: PayContext,
  answer: {
    response: Response;
    outcome: PaymentOutcome | undefined;
    chunks: AsyncIterable<Uint8Array>;
  },
): Promise<void> {
  const { response, outcome } = answer;
  const { status, headers } = response;
  const chunks: Uint8Array[] = [];
  for await (const chunk of answer.chunks) chunks.push(chunk);
  const text = formatJson({
    status,
    contentType: headers.get("content-type"),
    ...readable(Buffer.concat(chunks)),
    payment: outcome
      ? {
          state: outcome.state,
          protocol: outcome.protocol,
          terms: outcome.payment.terms,
          receipt: outcome.receipt ?? null,
          reason: outcome.reason ?? null,
        }
      : null,
  });
  await writing(() => io.write(`${text}\n`));
}

/** JSON holds text; binary data goes into it as base64. */
function readable(bytes: Buffer): { body: string } | { bodyBase64: string } {
  try {
    return { body: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch {
    return { bodyBase64: bytes.toString("base64") };
  }
}
