import { type Agent, request } from "node:http";
import { headerName as headerNames } from "@coinslot/protocol";

/** Buys at a seller on this machine, and resolves when its answer has come. */
export function getPaid(options: {
  port: number;
  agent: Agent;
  header: string;
  /** Name of the header that pays. Default: that of version 2. */
  headerName?: string;
}): Promise<void> {
  const { port, agent, header, headerName = headerNames.paymentSignature } = options;
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: "127.0.0.1",
        port,
        agent,
        path: "/weather",
        headers: { [headerName]: header },
      },
      (response) => {
        let body = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => {
          body += chunk;
        });
        response.on("end", () => {
          if (response.statusCode === 200) resolve();
          else reject(new Error(`A paid request got status ${response.statusCode}: ${body}`));
        });
      },
    );
    sent.on("error", reject);
    sent.end();
  });
}
