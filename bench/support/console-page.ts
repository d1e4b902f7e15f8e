import { type ClientRequest, get } from "node:http";
import * as z from "zod";

/** A page of a console, signed in, as far as its server notices. */
export interface ConsolePage {
  /** Runs an operation, and resolves to its answer's text. */
  run(operation: string, argument?: unknown): Promise<string>;
  /**
   * Shows the page Today: hears of changes, and reads it again a second after one. Resolves once
   * the first read is there.
   */
  watchToday(): Promise<{ reads(): number; close(): void }>;
}

/** As in the console's `pages/api/events.ts`. */
const pauseMs = 1_000;
const signedInSchema = z.object({ token: z.string() });

/** Signs in with the console's key. */
export async function openConsolePage(origin: string, key: string): Promise<ConsolePage> {
  const headers = (token: string, cookie = "") => ({
    Origin: origin,
    "Sec-Fetch-Site": "same-origin",
    "Content-Type": "application/json",
    "X-Coinslot-Token": token,
    Cookie: cookie,
  });
  const response = await fetch(`${origin}/api/session`, {
    method: "POST",
    headers: headers("none"),
    body: JSON.stringify({ key }),
  });
  const { token } = signedInSchema.parse(await response.json());
  const [cookie = ""] = (response.headers.get("set-cookie") ?? "").split(";");

  async function run(operation: string, argument: unknown = {}): Promise<string> {
    const answer = await fetch(`${origin}/api/${operation}`, {
      method: "POST",
      headers: headers(token, cookie),
      body: JSON.stringify(argument),
    });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`${operation}: ${answer.status} ${text}`);
    return text;
  }

  return {
    run,
    async watchToday() {
      let reads = 0;
      let timer: NodeJS.Timeout | undefined;
      let last: Promise<unknown> = Promise.resolve();
      const read = () => {
        timer = undefined;
        last = run("today").then(() => {
          reads += 1;
        });
      };
      const events = await openEvents(`${origin}/api/events`, cookie, () => {
        timer ??= setTimeout(read, pauseMs);
      });
      read();
      await last;
      return {
        reads: () => reads,
        close() {
          clearTimeout(timer);
          events.destroy();
        },
      };
    },
  };
}

function openEvents(url: string, cookie: string, onChange: () => void): Promise<ClientRequest> {
  return new Promise((resolve, reject) => {
    const request = get(url, { headers: { Cookie: cookie }, agent: false }, (response) => {
      if (response.statusCode !== 200) {
        reject(new Error(`Events: ${response.statusCode}`));
        return;
      }
      response.setEncoding("utf8");
      response.on("data", (text: string) => {
        if (/^event: changed$/m.test(text)) onChange();
      });
      // The page leaves in the middle of an event.
      response.on("error", () => undefined);
      resolve(request);
    });
    request.on("error", reject);
  });
}
