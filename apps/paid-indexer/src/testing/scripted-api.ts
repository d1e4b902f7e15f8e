import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { listen } from "@coinslot/devnet";

/** A request that has arrived. */
export interface Arrived {
  method: string;
  target: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** The API's answer: a status with a body, or any handling of the response. */
export type Script = (response: ServerResponse, request: Arrived) => void;

/** A remote API with scripted answers. */
export interface ScriptedApi {
  url: string;
  /** The requests since the last `answer`. */
  arrived: Arrived[];
  /** Changes the answer. */
  answer(script: Script): void;
  /** Closes its server. */
  stop(): Promise<void>;
}

/** Starts an API that answers `{}` in JSON until it gets another script. */
export async function startScriptedApi(): Promise<ScriptedApi> {
  let script: Script = json(200, {});
  const arrived: Arrived[] = [];
  const { url, close } = await listen(async (request, response) => {
    const { method = "", url: target = "", headers } = request;
    const received = { method, target, headers, body: await text(request) };
    arrived.push(received);
    script(response, received);
  });
  return {
    url,
    arrived,
    answer(next) {
      arrived.length = 0;
      script = next;
    },
    stop: close,
  };
}

/** An answer in JSON. */
export function json(status: number, body: unknown, headers: Record<string, string> = {}): Script {
  return (response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(body));
  };
}
