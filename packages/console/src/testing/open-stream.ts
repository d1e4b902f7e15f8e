import { get } from "node:http";
import { onTestFinished } from "vitest";

/** An event stream that a test reads. */
export interface TestStream {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  /** The names of the events so far. */
  events(): string[];
  isEnded(): boolean;
  close(): void;
}

/** Opens `GET /api/events`, until the test ends. */
export function openStream(
  origin: string,
  headers: Record<string, string> = {},
): Promise<TestStream> {
  return new Promise((resolve, reject) => {
    const request = get(`${origin}/api/events`, { headers, agent: false }, (response) => {
      let text = "";
      let isEnded = false;
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      response.once("close", () => {
        isEnded = true;
      });
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        events: () => [...text.matchAll(/^event: (\w+)$/gm)].map(([, name = ""]) => name),
        isEnded: () => isEnded,
        close: () => request.destroy(),
      });
    });
    request.on("error", reject);
    onTestFinished(() => void request.destroy());
  });
}
