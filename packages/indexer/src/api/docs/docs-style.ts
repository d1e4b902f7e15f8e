/** The style of the page, in light and dark. */
export const docsStyle = `
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #16202b; --quiet: #5b6877; --line: #dde3ea;
  --get: #0b7a5e; --post: #7a4b0b; --delete: #a5322a; --accent: #0b6bcb; --code: #f0f3f7;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f151c; --card: #17202a; --ink: #e6edf4; --quiet: #93a3b5; --line: #273443;
    --get: #4cc9a4; --post: #e0a95c; --delete: #f08a80; --accent: #5aa9f5; --code: #101820;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; padding: 0 1.25rem 3rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
header, main, footer { max-width: 56rem; margin: 0 auto; }
header {
  display: flex; flex-wrap: wrap; gap: 1rem 2rem; align-items: end; justify-content: space-between;
  padding: 2.25rem 0 1.25rem;
}
h1 { font-size: 1.5rem; line-height: 1.2; margin: 0 0 .25rem; letter-spacing: -.01em; }
h2 {
  font-size: .8rem; text-transform: uppercase; letter-spacing: .06em; color: var(--quiet);
  margin: 1.75rem 0 .5rem;
}
p { margin: 0; }
header p, footer, .hint { color: var(--quiet); }
footer { padding-top: 1.75rem; font-size: .85rem; }
a { color: var(--accent); }
code, pre, input, textarea, select, .path {
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .85rem;
}
label { display: block; font-size: .85rem; color: var(--quiet); }
input, textarea, select {
  display: block; width: 100%; margin-top: .2rem; padding: .45rem .6rem; color: var(--ink);
  background: var(--page); border: 1px solid var(--line); border-radius: 6px;
}
textarea { min-height: 9rem; resize: vertical; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
.key { width: min(26rem, 100%); }
details { background: var(--card); border: 1px solid var(--line); border-radius: 8px; margin-top: .5rem; }
summary {
  display: flex; flex-wrap: wrap; gap: .2rem .75rem; align-items: baseline; padding: .65rem .9rem;
  cursor: pointer; list-style: none;
}
summary::-webkit-details-marker { display: none; }
.method { font-weight: 700; font-size: .75rem; width: 3.6rem; letter-spacing: .03em; }
.method.get { color: var(--get); } .method.post { color: var(--post); } .method.delete { color: var(--delete); }
.path { overflow-wrap: anywhere; }
.about { color: var(--quiet); margin-left: auto; font-size: .85rem; }
form { padding: 0 .9rem 1rem; display: grid; gap: .8rem; border-top: 1px solid var(--line); padding-top: .9rem; }
.fields { display: grid; gap: .8rem; grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); }
.wide { grid-column: 1 / -1; }
.hint { font-size: .85rem; white-space: pre-line; }
.actions { display: flex; flex-wrap: wrap; gap: .6rem; align-items: center; }
button {
  font: inherit; font-size: .9rem; padding: .4rem .95rem; border-radius: 6px; cursor: pointer;
  border: 1px solid var(--line); background: transparent; color: var(--ink);
}
button.main { background: var(--accent); border-color: var(--accent); color: var(--card); font-weight: 600; }
pre {
  margin: 0; padding: .75rem .9rem; background: var(--code); border: 1px solid var(--line); border-radius: 6px;
  overflow: auto; max-height: 24rem; white-space: pre-wrap; overflow-wrap: anywhere;
}
.status { font-weight: 600; } .status.good { color: var(--get); } .status.bad { color: var(--delete); }
.notice { padding: 1rem 0; color: var(--quiet); }
[hidden] { display: none !important; }
`;
