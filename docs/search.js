/* Browsers start no worker for a page that was opened from disk. There the search runs in a hidden frame instead. */
class FrameWorker extends EventTarget {
  constructor(url) {
    super();
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.append(frame);
    this.room = frame.contentWindow;
    this.room.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }));
    this.ready = new Promise((done, failed) => {
      const script = Object.assign(this.room.document.createElement("script"), { src: url, onload: done, onerror: failed });
      this.room.document.head.append(script);
    });
  }

  postMessage(data) {
    this.ready.then(() => this.room.dispatchEvent(new MessageEvent("message", { data })));
  }
}

if (location.protocol === "file:") window.Worker = FrameWorker;
