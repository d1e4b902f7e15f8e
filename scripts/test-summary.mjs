// Reads the test runner's JSON reports in a folder; prints the closing line of CI with its true
// numbers. Exits with 1 when a test failed, was skipped, or none ran.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const reports = readReports(process.argv[2] ?? "");
let [passed, failed, skipped] = [0, 0, 0];
for (const report of reports) {
  const brokenFiles = report.testResults.filter(
    (file) => file.status === "failed" && file.assertionResults.length === 0,
  ).length;
  passed += report.numPassedTests;
  failed += report.numFailedTests + brokenFiles;
  skipped += report.numPendingTests + report.numTodoTests;
}
if (skipped > 0) console.log(`${skipped} tests were skipped: a skipped test is a defect.`);
if (passed === 0) console.log("No test ran.");
console.log(`${passed} passed, ${failed} failed`);
const isWell = reports.every(({ success }) => success);
process.exit(failed > 0 || skipped > 0 || passed === 0 || !isWell ? 1 : 0);

function readReports(folder) {
  try {
    const files = readdirSync(folder).filter((name) => name.endsWith(".json"));
    if (files.length === 0) throw new Error("no report");
    return files.map((name) => JSON.parse(readFileSync(join(folder, name), "utf8")));
  } catch {
    console.log("The test runner left no report.\n0 passed, 1 failed");
    process.exit(1);
  }
}
