"use strict";
// The page's one stream of events: closed while the tab is hidden, and opened again when it breaks.
(function () {
  class LiveSource extends EventTarget {
    constructor(url) {
      super();
      this.url = url;
      this.names = new Set();
      this.wait = 1000;
      this.timer = 0;
      this.real = null;
      document.addEventListener("visibilitychange", () => this.follow());
      this.follow();
    }
    get readyState() { return this.real ? this.real.readyState : EventSource.CLOSED; }
    addEventListener(name, listener) {
      super.addEventListener(name, listener);
      if (!this.names.has(name)) {
        this.names.add(name);
        if (this.real) { this.forward(name); }
      }
    }
    forward(name) {
      this.real.addEventListener(name, (event) => {
        this.dispatchEvent(new MessageEvent(name, { data: event.data }));
      });
    }
    follow() {
      window.clearTimeout(this.timer);
      if (document.hidden) {
        this.close();
      } else if (!this.real) {
        this.open();
      }
    }
    open() {
      this.real = new EventSource(this.url);
      this.names.forEach((name) => this.forward(name));
      this.real.onopen = () => { this.wait = 1000; };
      this.real.onerror = () => { this.again(); };
    }
    again() {
      this.close();
      notCurrent();
      if (document.hidden) { return; }
      this.timer = window.setTimeout(() => this.follow(), this.wait);
      this.wait = Math.min(this.wait * 2, 16000);
    }
    close() {
      if (this.real) { this.real.close(); }
      this.real = null;
    }
  }

  let unloading = false;
  window.addEventListener("pagehide", () => { unloading = true; });

  function notCurrent() {
    const banner = document.getElementById("live_banner");
    if (unloading || !banner || banner.querySelector(".away")) { return; }
    const text = document.createElement("p");
    text.className = "outage away";
    text.textContent = "Not current since " + new Date().toLocaleTimeString() +
      ": the command that serves this page does not answer.";
    banner.replaceChildren(text);
  }

  // A log that is followed stays at its end, unless somebody has scrolled up, and keeps its last lines.
  const LINES_MAX = 5000;
  let isAtEnd = true;
  document.addEventListener("htmx:sseBeforeMessage", () => {
    const log = document.getElementById("log_lines");
    isAtEnd = log && log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  });
  document.addEventListener("htmx:sseMessage", () => {
    const log = document.getElementById("log_lines");
    if (!log || !isAtEnd) { return; }
    while (log.childElementCount > LINES_MAX) { log.firstElementChild.remove(); }
    log.scrollTop = log.scrollHeight;
  });

  htmx.createEventSource = (url) => new LiveSource(url);
})();
