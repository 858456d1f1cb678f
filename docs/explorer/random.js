// Standard normals from a seed: the same seed gives the same picture.
"use strict";
(function (explorer) {
  /** Return a function that yields uniform numbers in (0, 1), by a counter that is hashed to 32 bits. */
  function uniforms(seed) {
    let state = seed >>> 0;
    return () => {
      state = (state + 0x9e3779b9) >>> 0;
      let word = state;
      word = Math.imul(word ^ (word >>> 16), 0x21f0aaad);
      word = Math.imul(word ^ (word >>> 15), 0x735a2d97);
      return ((word ^ (word >>> 15)) >>> 0) / 4294967296 + 0.5 / 4294967296;
    };
  }

  /** Return `count` standard normals, two from each pair of uniform numbers (Box and Muller). */
  function normals(seed, count) {
    const next = uniforms(seed);
    const out = new Float64Array(count);
    for (let i = 0; i < count; i += 2) {
      const radius = Math.sqrt(-2 * Math.log(next()));
      const angle = 2 * Math.PI * next();
      out[i] = radius * Math.cos(angle);
      if (i + 1 < count) out[i + 1] = radius * Math.sin(angle);
    }
    return out;
  }

  /** Return a function that hands out the next so many of the given normals. */
  function taker(values) {
    let place = 0;
    return (count) => {
      if (place + count > values.length) {
        throw new Error(`normals: expected at least ${place + count}; got ${values.length}.`);
      }
      place += count;
      return values.subarray(place - count, place);
    };
  }

  explorer.random = { normals, taker };
})((globalThis.explorer ??= {}));
