import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import type { RequestHandler, Response } from "express";

/** Longer than what fits into one piece. */
export const longText = "The quick brown fox jumps over the lazy dog. ".repeat(400);

const root = fileURLToPath(new URL("../..", import.meta.url));
const file = "package.json";

/** All ways in which a handler may answer, and the headers of its request besides the payment. */
export const waysToAnswer: [
  name: string,
  handler: RequestHandler,
  headers?: Record<string, string>,
][] = [
  ["json", (_request, response) => void response.json({ a: [1, "é"] })],
  ["send of text", (_request, response) => void response.send(longText)],
  ["send of bytes", (_request, response) => void response.send(Buffer.from([0, 255, 10]))],
  ["a status and its words", (_request, response) => void response.sendStatus(201)],
  ["a redirect", (_request, response) => void response.redirect(303, "/elsewhere")],
  ["204", (_request, response) => void response.status(204).end()],
  ["304", (_request, response) => void response.send(longText), { "If-None-Match": "*" }],
  ["sendFile", (_request, response) => response.sendFile(file, { root })],
  ["download", (_request, response) => response.download(file, "answer.txt", { root })],
  ["a range", (_request, response) => response.sendFile(file, { root }), { Range: "bytes=4-8" }],
  [
    "several headers of one name",
    (_request, response) => void response.append("Link", "<a>").append("Link", "<b>").send("x"),
  ],
  [
    "a vary and a type",
    (_request, response) => void response.vary("Accept").type("html").send("<p>"),
  ],
  [
    "writeHead with an object",
    (_request, response) =>
      void response.writeHead(202, { "X-A": "1", "X-B": ["2", "3"] }).end("x"),
  ],
  [
    "writeHead with words and an object",
    (_request, response) => void response.writeHead(202, "Good", { "X-A": "1" }).end("x"),
  ],
  [
    "writeHead with a flat list",
    (_request, response) => void response.writeHead(202, ["X-A", "1", "X-B", "2"]).end("x"),
  ],
  [
    "writeHead over what was set",
    (_request, response) => {
      response.setHeader("X-A", "old");
      response.setHeader("X-Kept", "yes");
      response.writeHead(200, { "X-A": "new" });
      response.end("x");
    },
  ],
  [
    "writeHeader, which is another name of writeHead",
    (_request, response) => {
      Reflect.apply(Reflect.get(response, "writeHeader"), response, [202, { "X-A": "1" }]);
      response.end("x");
    },
  ],
  [
    "flushHeaders first",
    (_request, response) => {
      response.setHeader("X-A", "1");
      response.flushHeaders();
      response.end("later");
    },
  ],
  [
    "writes in encodings",
    (_request, response) => {
      response.write("68656c6c6f", "hex");
      response.write("IHdvcmxk", "base64");
      response.write(new Uint8Array([33]));
      response.write("é", "latin1");
      response.end("é", "utf8");
    },
  ],
  [
    "writes that wait for their callbacks",
    (_request, response) => {
      response.write("a", () =>
        response.write("b", "utf8", () => response.end("c", () => undefined)),
      );
    },
  ],
  [
    "end with nothing but a callback",
    (_request, response) => {
      response.end(() => undefined);
    },
  ],
  [
    "a pipe",
    (_request, response) =>
      void Readable.from(Array.from({ length: 50 }, () => longText)).pipe(response),
  ],
  [
    "a pipeline that is awaited",
    async (_request, response) => {
      await pipeline(Readable.from([longText, longText]), response);
    },
  ],
  [
    "trailers",
    (_request, response) => {
      response.writeHead(200, { Trailer: "X-Sum" });
      response.write("body");
      response.addTrailers({ "X-Sum": "7" });
      response.end();
    },
  ],
  [
    "hints before it",
    (_request, response) => {
      response.writeProcessing();
      response.writeEarlyHints({ link: "</style.css>; rel=preload" }, () => response.send("x"));
    },
  ],
  [
    "a content length of its own",
    (_request, response) => {
      response.setHeader("Content-Length", 5);
      response.write("he");
      response.end("llo");
    },
  ],
  [
    "a late answer",
    (_request, response) => {
      setTimeout(() => response.json({ late: true }), 20);
    },
  ],
  [
    "a download of a name in latin1",
    (_request, response) => response.download(file, "näme.txt", { root }),
  ],
  ...(
    [
      ["end of text", (response) => void response.end("x")],
      ["end of longer text", (response) => void response.end("é".repeat(20_000))],
      ["end of latin1", (response) => void response.end("é", "latin1")],
      ["end of hexadecimals", (response) => void response.end("6161", "hex")],
      ["end of bytes", (response) => void response.end(Buffer.from("é"))],
      ["end of nothing", (response) => void response.end()],
      ["send of text", (response) => void response.send("é")],
      ["send of bytes", (response) => void response.send(Buffer.from([1]))],
      ["a head, then an end", (response) => void response.writeHead(200).end("é")],
      [
        "a flushed head",
        (response) => {
          response.flushHeaders();
          response.end("é");
        },
      ],
      [
        "a write",
        (response) => {
          response.write("x");
          response.end("é");
        },
      ],
      [
        "a write of a known length",
        (response) => {
          response.setHeader("Content-Length", 3);
          response.write("x");
          response.end("é");
        },
      ],
    ] satisfies [string, (response: Response) => void][]
  ).map(([name, answer]): [string, RequestHandler] => [
    `letters of latin1 in its head: ${name}`,
    (_request, response) => {
      response.setHeader("X-Name", "näme");
      response.setHeader("Content-Disposition", 'attachment; filename="näme.txt"');
      answer(response);
    },
  ]),
];
