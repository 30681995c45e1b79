// One WebSocket to the server: requests with replies, messages of the server, and reconnection.
import type { Failure, Json, PictureHeader, Reply } from "./types";

export class RequestError extends Error {
  constructor(readonly failure: Failure) {
    super(failure.text);
  }
}

export type Status = "connecting" | "open" | "lost" | "refused";

interface Waiting {
  resolve: (reply: Reply) => void;
  reject: (error: Error) => void;
}

export interface Handlers {
  message: (message: { [key: string]: Json }) => void;
  picture: (header: PictureHeader, payload: Uint8Array<ArrayBuffer>) => void;
  status: (status: Status) => void;
}

/** Milliseconds before the first attempt to connect again, and the most between two attempts. */
const FIRST_DELAY = 400;
const LONGEST_DELAY = 4000;

export class Connection {
  private socket: WebSocket | null = null;
  private next = 1;
  private waiting = new Map<number, Waiting>();
  private delay = FIRST_DELAY;
  /** Whether the state has come: until then the page knows nothing, and is not open. */
  private known = false;
  private readonly text = new TextDecoder();

  constructor(private readonly address: string, private readonly handlers: Handlers) {
    addEventListener("online", () => this.again());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.again();
    });
  }

  open(): void {
    this.handlers.status("connecting");
    const socket = new WebSocket(this.address);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    this.known = false;
    socket.onmessage = (event) => this.take(event.data as string | ArrayBuffer);
    socket.onclose = () => {
      if (this.socket !== socket) return;
      this.socket = null;
      for (const waiting of this.waiting.values()) {
        waiting.reject(new RequestError({ text: "The connection to the studio was lost." }));
      }
      this.waiting.clear();
      this.handlers.status("lost");
      setTimeout(() => this.again(), this.delay);
      this.delay = Math.min(this.delay * 1.7, LONGEST_DELAY);
    };
  }

  get ready(): boolean {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  /** Ask the server; the promise fails with a RequestError that has the server's words. */
  request(name: string, values: { [key: string]: unknown } = {}): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (!this.ready) {
        reject(new RequestError({ text: "The studio is not connected." }));
        return;
      }
      const id = this.next++;
      this.waiting.set(id, { resolve, reject });
      this.socket!.send(JSON.stringify({ id, do: name, ...values }));
    });
  }

  /** Tell the server something that needs no answer. */
  tell(name: string, values: { [key: string]: unknown } = {}): void {
    if (this.ready) this.socket!.send(JSON.stringify({ do: name, ...values }));
  }

  private again(): void {
    if (this.socket === null) this.checked().catch(() => this.open());
  }

  /** A server that was started again has another secret: then no attempt can succeed. */
  private async checked(): Promise<void> {
    let answer: Response | null = null;
    try {
      answer = await fetch("catalogue.json", { cache: "no-store" });
    } catch {
      answer = null;
    }
    if (this.socket !== null) return;
    if (answer !== null && (answer.status === 401 || answer.status === 403)) {
      this.handlers.status("refused");
      return;
    }
    this.open();
  }

  private take(data: string | ArrayBuffer): void {
    if (typeof data !== "string") {
      const length = new DataView(data).getUint32(0, true);
      const header = JSON.parse(this.text.decode(new Uint8Array(data, 4, length)));
      this.handlers.picture(header, new Uint8Array(data, 4 + length));
      return;
    }
    const message = JSON.parse(data);
    if (typeof message.reply === "number") {
      const waiting = this.waiting.get(message.reply);
      this.waiting.delete(message.reply);
      if (!waiting) return;
      if (message.ok) waiting.resolve(message);
      else waiting.reject(new RequestError(message.error ?? { text: "The studio refused this." }));
      return;
    }
    if (message.state && !this.known) {
      this.known = true;
      this.delay = FIRST_DELAY;
      this.handlers.status("open");
    }
    this.handlers.message(message);
  }
}
