/** Starts a devnet for people: prints its addresses and URLs, and stays until Ctrl-C. */
import { once } from "node:events";
import { parseArgs } from "node:util";
import { describeDevnet, describeExports } from "./describe-devnet.ts";
import { startDevnet } from "./devnet.ts";
import { type Postgres, startPostgres } from "./postgres.ts";

const usage = `Usage: npm run devnet -- [options]

  --chain-id <number>     default 9745, Plasma
  --port <number>         default: any free one
  --block-time <seconds>  default: a block for each transaction
  --postgres              starts an empty PostgreSQL as well
  --help
`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      "chain-id": { type: "string" },
      port: { type: "string" },
      "block-time": { type: "string" },
      postgres: { type: "boolean" },
      help: { type: "boolean" },
    },
  });
  if (values.help) {
    console.log(usage);
    return;
  }
  const chainId = readNumber("--chain-id", values["chain-id"]);
  const port = readNumber("--port", values.port);
  const blockTimeSeconds = readNumber("--block-time", values["block-time"]);

  const stopped = Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
  const devnet = await startDevnet({
    ...(chainId !== undefined && { chainId }),
    ...(port !== undefined && { port }),
    ...(blockTimeSeconds !== undefined && { blockTimeSeconds }),
  });
  let postgres: Postgres | undefined;
  try {
    if (values.postgres) postgres = await startPostgres();
    await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000_000n });
    console.log(await describeDevnet(devnet, { blockTimeSeconds }));
    if (postgres) console.log(`  PostgreSQL  ${postgres.url}\n`);
    console.log(`Ctrl-C stops it. For a seller and a buyer, in other terminals:

${describeExports(devnet)}`);
    await stopped;
  } finally {
    await postgres?.stop();
    await devnet.stop();
  }
  console.log("Stopped.");
}

function readNumber(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[0-9]{1,9}$/.test(text))
    throw new TypeError(`${flag} takes a whole number, not "${text}".`);
  return Number(text);
}

main().catch((error: unknown) => {
  console.error(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
  process.exitCode = 1;
});
