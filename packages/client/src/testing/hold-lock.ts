// Run by a test in its own process. Takes the lock of a file, reports it, and keeps it until it is
// killed.
import { withFileLock } from "../budget/file-lock.ts";

const [file = ""] = process.argv.slice(2);
await withFileLock(file, async () => {
  process.stdout.write("held\n");
  await new Promise((resolve) => setTimeout(resolve, 60_000));
});
