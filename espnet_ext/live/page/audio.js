// Where the audio comes from. A source has a `rate`, `run(send)`, which ends with the audio, and `stop()`;
// `send` takes 16-bit samples, a tenth of a second at most, and may keep the source waiting.

const FILE_RATE = 16000;
const PIECE_S = 0.1;

function toPcm(samples) {
  return Int16Array.from(samples, (sample) => Math.max(-32768, Math.min(32767, Math.round(sample * 32768))));
}

export async function openMicrophone() {
  if (!navigator.mediaDevices) {
    throw new Error("Browsers give pages the microphone over https or on localhost only. An audio file works here.");
  }
  let stream;
  try {
    const audio = { channelCount: 1, echoCancellation: false, noiseSuppression: false };
    stream = await navigator.mediaDevices.getUserMedia({ audio });
  } catch (error) {
    const reasons = {
      NotAllowedError: "The microphone is not allowed. Allow it beside the browser's address bar, or choose an audio file.",
      NotFoundError: "There is no microphone. Connect one, or choose an audio file.",
    };
    throw new Error(reasons[error.name] ?? `The microphone cannot be used: ${error.message}`);
  }
  const context = new AudioContext();
  await context.audioWorklet.addModule("capture.js");
  await context.resume();
  const capture = new AudioWorkletNode(context, "capture", { numberOfOutputs: 0, channelCount: 1, channelCountMode: "explicit" });
  const source = context.createMediaStreamSource(stream);
  return {
    rate: context.sampleRate,
    async run(send) {
      let sent = Promise.resolve();
      try {
        await new Promise((resolve, reject) => {
          capture.port.onmessage = ({ data }) => {
            sent = sent.then(() => (data ? send(toPcm(data)) : resolve()));
            sent.catch(reject);
          };
          source.connect(capture);
        });
      } finally {
        await context.close();
      }
    },
    stop() {
      capture.port.postMessage(null);
      stream.getTracks().forEach((track) => track.stop());
    },
  };
}

export async function openFile(file, paced, audible) {
  let audio;
  try {
    audio = await new OfflineAudioContext(1, 1, FILE_RATE).decodeAudioData(await file.arrayBuffer());
  } catch {
    throw new Error(`${file.name} is not audio that this browser can read.`);
  }
  const samples = mix(audio);
  let stopped = false;
  let player = null;
  return {
    rate: FILE_RATE,
    async run(send) {
      if (paced && audible) player = play(audio);
      const begin = performance.now();
      const size = FILE_RATE * PIECE_S;
      for (let first = 0; first < samples.length && !stopped; first += size) {
        const due = begin + (1000 * Math.min(first + size, samples.length)) / FILE_RATE;
        if (paced) await new Promise((resolve) => setTimeout(resolve, due - performance.now()));
        if (!stopped) await send(toPcm(samples.subarray(first, first + size)));
      }
      player?.close();
    },
    stop() {
      stopped = true;
    },
  };
}

function mix(audio) {
  const sum = audio.getChannelData(0).slice();
  for (let channel = 1; channel < audio.numberOfChannels; channel++) {
    audio.getChannelData(channel).forEach((sample, i) => { sum[i] += sample; });
  }
  return audio.numberOfChannels === 1 ? sum : sum.map((sample) => sample / audio.numberOfChannels);
}

function play(buffer) {
  const context = new AudioContext();
  const source = new AudioBufferSourceNode(context, { buffer });
  source.connect(context.destination);
  source.start();
  return context;
}
