// Run by a test in several processes: raises the ceiling of a channel by one, again and again, and
// prints each one once it is stored.
import { openChannelStore } from "../channels/channel-store.ts";

const [file = "", id = "", wanted = "0"] = process.argv.slice(2);
const store = await openChannelStore(file);
for (let count = 0; count < Number(wanted); count += 1) {
  const { ceiling } = store.update(id, (record) => ({ ...record, ceiling: record.ceiling + 1n }));
  process.stdout.write(`${ceiling}\n`);
}
