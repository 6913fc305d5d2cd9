// Hands the microphone's samples to the page in pieces of a tenth of a second.
class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.piece = new Float32Array(Math.round(sampleRate / 10));
    this.filled = 0;
    this.stopped = false;
    this.port.onmessage = () => {
      this.stopped = true;
      this.send();
      this.port.postMessage(null);
    };
  }

  send() {
    this.port.postMessage(this.piece.slice(0, this.filled));
    this.filled = 0;
  }

  process([[samples]]) {
    if (this.stopped) return false; // it may be asked again
    for (const sample of samples ?? []) {
      this.piece[this.filled++] = sample;
      if (this.filled === this.piece.length) this.send();
    }
    return true;
  }
}

registerProcessor("capture", Capture);
