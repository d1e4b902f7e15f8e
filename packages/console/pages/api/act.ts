import { ApiError, unreachable } from "./api-error.ts";
import { ask } from "./ask.ts";
import { noteChange } from "./events.ts";
import { endIntent, openIntent } from "./intents.ts";
import type { ActName, Acts } from "./operations.ts";
import { noteRefusal } from "./session.ts";

interface ActOptions {
  /** Subject of the act, such as a payment's id: it has one open act of a name at a time. */
  subject: string;
  /** The key or code that a large refund asks for. */
  confirmation?: string | undefined;
}

/**
 * Runs an acting operation. Its idempotency key belongs to the intent: operation, subject and
 * argument. The key is kept before the request leaves, and used until an answer has decided. So a
 * repetition changes nothing more, also after a reload. All that the page shows is read again.
 *
 * @throws ApiError
 */
export async function act<Name extends ActName>(
  name: Name,
  argument: Acts[Name]["argument"],
  { subject, confirmation }: ActOptions,
): Promise<Acts[Name]["result"]> {
  const intent = openIntent(name, subject, argument);
  try {
    const result = await ask(name, {
      method: "POST",
      body: argument,
      headers: {
        "Idempotency-Key": intent.key,
        ...(confirmation ? { "X-Coinslot-Confirmation": confirmation } : {}),
      },
    });
    // Cut off, or another program's: no answer.
    if (typeof result !== "object" || result === null) throw unreachable();
    endIntent(name, subject, { intent });
    noteChange();
    return result as Acts[Name]["result"];
  } catch (error) {
    if (error instanceof ApiError) {
      endIntent(name, subject, { intent, error });
      noteRefusal(error);
    }
    throw error;
  }
}
