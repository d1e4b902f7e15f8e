// Worker thread with a connection of its own, which only reads: a select of seconds does not hold
// the event loop of the program. Plain JavaScript, which a program that runs from its sources can
// load too.
import { parentPort, workerData } from "node:worker_threads";
import { sqliteSum, sqliteSumAggregate } from "./sqlite-amount.js";

const handle = await open();
parentPort?.on("message", ({ id, sql, parameters }) => {
  parentPort?.postMessage({ id, ...answer(sql, parameters) });
});
parentPort?.postMessage({ id: 0 });

async function open() {
  const { path, pragmas, isBuiltIn } = workerData;
  const { DatabaseSync } = isBuiltIn
    ? await import("node:sqlite")
    : await import("@photostructure/sqlite");
  const opened = new DatabaseSync(path, { readOnly: true });
  opened.aggregate(sqliteSum, sqliteSumAggregate);
  opened.exec(pragmas);
  return opened;
}

/**
 * @param {string} sql
 * @param {any[]} parameters
 */
function answer(sql, parameters) {
  try {
    const statement = handle.prepare(sql);
    if (statement.columns().length > 0) return { rows: [...statement.iterate(...parameters)] };
    statement.run(...parameters);
    return { rows: [] };
  } catch (error) {
    const { message, errcode } = /** @type {{ message: string, errcode?: unknown }} */ (error);
    return { error: { message, errcode } };
  }
}
