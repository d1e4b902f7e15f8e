// Entry of the console's pages.
import { render } from "preact";
import "@coinslot/pages/tokens.css";
import "./main.css";
import { App } from "./app.tsx";

const root = document.getElementById("console");
if (root !== null) render(<App />, root);
