// Install size and number of dependencies of each package, with bounds.
import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";

/**
 * Upper bounds of an installation: packages besides the named one, and megabytes (10^6) on disk.
 * Peer dependencies count, which npm installs too; optional ones do not. viem alone takes 40 MB.
 */
const bounds = {
  "@coinslot/protocol": { packages: 20, megabytes: 60 },
  "@coinslot/concurrency": { packages: 0, megabytes: 0.1 },
  "@coinslot/chain": { packages: 21, megabytes: 60 },
  "@coinslot/bridge": { packages: 22, megabytes: 60 },
  "@coinslot/client": { packages: 22, megabytes: 60 },
  "@coinslot/storage": { packages: 20, megabytes: 36 },
  "@coinslot/webhooks": { packages: 23, megabytes: 60 },
  "@coinslot/facilitator": { packages: 70, megabytes: 105 },
  "@coinslot/console": { packages: 72, megabytes: 106 },
  "@coinslot/paywall": { packages: 22, megabytes: 60 },
  "@coinslot/express": { packages: 95, megabytes: 63 },
  "@coinslot/indexer": { packages: 120, megabytes: 102 },
  "@coinslot/hosting": { packages: 150, megabytes: 109 },
  "@coinslot/inspector": { packages: 21, megabytes: 60 },
  "@coinslot/cli": { packages: 155, megabytes: 110 },
};

/**
 * Measures what a package brings along, from an installation of all of them.
 *
 * @param {string} installed folder with node_modules, made by npm
 * @param {readonly string[]} names packages to measure
 * @returns {{ lines: string[], faults: string[] }} a line for each package, and those beyond their
 * bounds
 */
export function measurePackages(installed, names) {
  const lockfile = join(installed, "node_modules", ".package-lock.json");
  const { packages } = JSON.parse(readFileSync(lockfile, "utf8"));
  const lines = [];
  const faults = [];
  for (const name of names) {
    const places = closureOf(`node_modules/${name}`, packages);
    const count = places.size - 1;
    const bytes = [...places].reduce((sum, place) => sum + sizeOf(join(installed, place)), 0);
    const megabytes = bytes / 1e6;
    const bound = bounds[name];
    lines.push(`${name}: ${count} dependencies, ${megabytes.toFixed(1)} MB installed`);
    if (bound === undefined) faults.push(`${name} has no bound in scripts/package-sizes.mjs.`);
    else if (count > bound.packages || megabytes > bound.megabytes) {
      faults.push(
        `${name} may bring ${bound.packages} dependencies and ${bound.megabytes} MB: ` +
          `it brings ${count} and ${megabytes.toFixed(1)} MB.`,
      );
    }
  }
  return { lines, faults };
}

/** The places of a package and of all that it needs, directly or not. */
function closureOf(start, packages) {
  const places = new Set();
  const visit = (place) => {
    if (places.has(place)) return;
    places.add(place);
    const { dependencies, peerDependencies, peerDependenciesMeta } = packages[place];
    for (const name of Object.keys({ ...dependencies, ...peerDependencies })) {
      const isOptional =
        dependencies?.[name] === undefined && peerDependenciesMeta?.[name]?.optional;
      const found = isOptional ? undefined : resolvePlace(name, place, packages);
      if (found !== undefined) visit(found);
    }
  };
  visit(start);
  return places;
}

/** The place of a dependency as Node finds it: beside its dependent, or further up. */
function resolvePlace(name, from, packages) {
  for (let at = from; ; at = posix.dirname(at)) {
    const place = posix.join(at, "node_modules", name);
    if (packages[place] !== undefined) return place;
    if (at === ".") return undefined;
  }
}

/** Bytes of a package's own files. */
function sizeOf(folder) {
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) bytes += entry.name === "node_modules" ? 0 : sizeOf(path);
    else bytes += lstatSync(path).size;
  }
  return bytes;
}
