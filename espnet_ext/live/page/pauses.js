// Finds the pauses of speech, where a sentence can end. Pieces are a tenth of a second.

const QUIET = 0.1; // of the loudest piece of late
const FORGETTING = 0.99; // of the loudest, a piece
const PAUSE = 5; // quiet pieces
const SENTENCE = 5; // loud pieces at least

export class Pauses {
  loudest = 0;
  quiet = 0;
  heard = 0;

  // Whether this piece completes a pause after speech.
  end(samples) {
    const level = Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length);
    this.loudest = Math.max(level, FORGETTING * this.loudest);
    if (level >= QUIET * this.loudest) {
      this.quiet = 0;
      this.heard++;
      return false;
    }
    this.quiet++;
    if (this.quiet < PAUSE || this.heard < SENTENCE) return false;
    this.heard = 0;
    return true;
  }
}
