import { render } from "preact";
import { App } from "./app";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/picture.css";
import "./styles/panels.css";
import "./styles/dialogs.css";
import { connection, loadCatalogue, status, toast } from "./store";
import { applyTheme } from "./ui/theme";

applyTheme();
const root = document.getElementById("studio")!;
root.replaceChildren();
render(<App />, root);

async function begin(): Promise<void> {
  try {
    await loadCatalogue();
  } catch (error) {
    if ((error as Error).message === "403") {
      status.value = "refused";
      return;
    }
    toast("error", "The studio does not answer. Trying again…");
    setTimeout(() => void begin(), 2000);
    return;
  }
  connection.open();
}

void begin();
