import { type Agent, request } from "node:http";
import { headerName } from "@coinslot/protocol";

/** Buys at a seller on this machine, and resolves when its answer has come. */
export function getPaid(options: { port: number; agent: Agent; header: string }): Promise<void> {
  const { port, agent, header } = options;
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: "127.0.0.1",
        port,
        agent,
        path: "/weather",
        headers: { [headerName.paymentSignature]: header },
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
