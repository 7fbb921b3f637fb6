// Search runs in a worker, and browsers begin none from files: a hidden frame stands for it, so that
// the site is searched without a server, and without a network.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = Object.assign(document.createElement("iframe"), { hidden: true });
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      this.ready = new Promise((done) => (inside.loaded = done));
      window.addEventListener("message", (event) => {
        if (event.source === inside) this.dispatchEvent(new MessageEvent("message", { data: event.data }));
      });
      inside.document.write(
        "<script>postMessage = (data) => parent.postMessage(data, '*')</" + "script>" +
        `<script src="${url}" onload="loaded()"></` + "script>"
      );
      inside.document.close();
    }
    postMessage(data) {
      const inside = this.frame.contentWindow;
      this.ready.then(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
