// Subtitles of words with the times at which they were shown.

const MOST_CHARACTERS = 84; // two lines of 42
const LONGEST_MS = 6000;
const SHORTEST_MS = 1000;
const READING_MS = 60; // a character

export function cues(words, separator) {
  const groups = [];
  for (const word of words) {
    const group = groups.at(-1);
    const full = group && (group.text + separator + word.text).length > MOST_CHARACTERS;
    if (!group || full || /[.!?…。！？]$/.test(group.text) || word.delay_ms - group.start > LONGEST_MS) {
      groups.push({ start: word.delay_ms, text: word.text });
    } else {
      group.text += separator + word.text;
    }
  }
  let free = 0;
  return groups.map(({ start, text }) => {
    const begin = Math.max(start, free);
    free = begin + Math.min(LONGEST_MS, Math.max(SHORTEST_MS, READING_MS * text.length));
    return { start: begin, end: free, text };
  });
}

function clock(ms, point) {
  const whole = Math.round(ms);
  const two = (number) => String(Math.floor(number)).padStart(2, "0");
  const seconds = `${two(whole / 3600000)}:${two((whole / 60000) % 60)}:${two((whole / 1000) % 60)}`;
  return `${seconds}${point}${String(whole % 1000).padStart(3, "0")}`;
}

export function srt(list) {
  return list.map((cue, i) => `${i + 1}\n${clock(cue.start, ",")} --> ${clock(cue.end, ",")}\n${cue.text}\n`).join("\n");
}

export function vtt(list) {
  const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const blocks = list.map((cue) => `${clock(cue.start, ".")} --> ${clock(cue.end, ".")}\n${escaped(cue.text)}\n`);
  return ["WEBVTT\n", ...blocks].join("\n");
}
