import type { Environment } from "./read-secret.ts";

const numbered = /^COINSLOT_RPC_URL_([1-9][0-9]*)$/;

/**
 * The variables of a file without those whose subject the environment sets itself, in any form.
 *
 * - `WALLET_PRIVATE_KEY_FILE` in the environment hides the file's `WALLET_SEED_PHRASE`; `PAY_TO`
 *   hides its `SELLER_SEED_PHRASE`.
 * - The operator's key in the environment hides the file's URL: it goes to no seller of the file.
 *   So does the key of an indexing service.
 * - Nodes of a network in the environment hide the file's nodes of that network. Both may have
 *   either form, `COINSLOT_RPC_URL` or `COINSLOT_RPC_URL_<chain id>`.
 */
export function passOver(
  environment: Environment,
  fromFile: Readonly<Record<string, string>>,
): Record<string, string> {
  const isSet = (name: string) => Boolean(environment[name]);
  const subjects = new Set(Object.keys(environment).filter(isSet).map(subjectOf));
  const main = mainNetworkOf(environment);
  const mainOfFile = mainNetworkOf(fromFile);
  const networks = networksOf(environment, main ?? mainOfFile);

  /** The network of which a variable of the file names nodes, or which it makes the main one. */
  function networkOf(name: string): string | undefined {
    const plain = withoutFile(name);
    if (plain === "COINSLOT_RPC_URL") return mainOfFile ?? main;
    return numbered.exec(plain)?.[1];
  }
  function isTaken(name: string): boolean {
    const network = networkOf(name);
    if (network !== undefined && networks.has(network)) return false;
    switch (withoutFile(name)) {
      case "COINSLOT_NETWORK":
        // A URL without a network, in the environment, is of the file's network.
        return main === undefined && !(networks.has(mainOfFile ?? "") && !hasMainUrl(environment));
      case "COINSLOT_RPC_URL":
        return !hasMainUrl(environment) && (main === undefined || network === main);
      default:
        return !subjects.has(subjectOf(name));
    }
  }
  return Object.fromEntries(Object.entries(fromFile).filter(([name]) => isTaken(name)));
}

function hasMainUrl(environment: Environment): boolean {
  return Boolean(environment.COINSLOT_RPC_URL || environment.COINSLOT_RPC_URL_FILE);
}

/** The chain id of `COINSLOT_NETWORK`; another text stands for itself. */
function mainNetworkOf({ COINSLOT_NETWORK: network }: Environment): string | undefined {
  return network ? network.replace(/^eip155:/, "") : undefined;
}

/** Chain ids of which an environment names nodes. */
function networksOf(environment: Environment, main: string | undefined): ReadonlySet<string> {
  const ids = Object.entries(environment).flatMap(([name, value]) => {
    const id = numbered.exec(withoutFile(name))?.[1];
    return value && id !== undefined ? [id] : [];
  });
  return new Set(hasMainUrl(environment) && main !== undefined ? [...ids, main] : ids);
}

function withoutFile(name: string): string {
  return name.replace(/_FILE$/, "");
}

/** The subject of a variable, whichever of its forms it is in. */
function subjectOf(name: string): string {
  if (name === "PAY_TO") return "SELLER";
  return withoutFile(name)
    .replace(/_(?:SEED_PHRASE|PRIVATE_KEY)$/, "")
    .replace(/^COINSLOT_OPERATOR_(?:URL|KEY)$/, "COINSLOT_OPERATOR")
    .replace(/^INDEXER_(?:URL|API_KEY)$/, "INDEXER_SERVICE");
}
