// Search in a manual that is opened as a file: browsers start no workers from files, so the worker runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      window.addEventListener("message", ({ source, data }) => {
        if (source === frame.contentWindow) this.dispatchEvent(new MessageEvent("message", { data }));
      });
      this.window = frame.contentWindow;
      const begin = () => {
        self.postMessage = (data) => parent.postMessage(data, "*");
        self.importScripts = (...urls) => urls.reduce((loaded, url) => loaded.then(() => new Promise((resolve) => {
          const script = document.body.appendChild(Object.assign(document.createElement("script"), { src: url }));
          script.onload = resolve;
        })), Promise.resolve());
      };
      this.ready = new Promise((resolve) => (frame.onload = resolve));
      frame.contentDocument.write(`<body><script>(${begin})()<\/script><script src="${url}"><\/script>`);
      frame.contentDocument.close();
    }

    postMessage(data) {
      this.ready.then(() => this.window.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {}
  };
}
