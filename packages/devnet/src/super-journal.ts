const magic = Buffer.from("d9d505f920a163d7", "hex");

/**
 * A hot journal of SQLite that holds no page, and the name of a super-journal. A connection that
 * may write plays it back, then deletes the named file. The file format is in SQLite's `pager.c`.
 */
export function superJournalOf(path: string): Buffer {
  const name = Buffer.from(path);
  const numbers = Buffer.alloc(8);
  numbers.writeUInt32BE(name.length, 0);
  numbers.writeUInt32BE(
    name.reduce((sum, byte) => sum + byte, 0),
    4,
  );
  return Buffer.concat([name, numbers, magic]);
}
