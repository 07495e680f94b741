// A neighbour on the machine: walks through 64 MiB of memory without end, so that others find the caches full.
const words = new Int32Array((64 * 1024 * 1024) / 4)
const LINE = 16
for (;;) for (let at = 0; at < words.length; at += LINE) words[at]++
