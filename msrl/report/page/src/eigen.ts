// Symmetric matrices as the page gets them: the upper triangle, row by row.

export function unpack(packed: number[], size: number): Float64Array {
  const full = new Float64Array(size * size);
  let k = 0;
  for (let i = 0; i < size; i++) {
    for (let j = i; j < size; j++, k++) {
      full[i * size + j] = full[j * size + i] = packed[k] ?? 0;
    }
  }
  return full;
}

// Eigenvalues, largest first, by cyclic Jacobi rotations: a millisecond for 28 × 28.
export function eigenvalues(matrix: Float64Array, size: number): number[] {
  const a = Float64Array.from(matrix);
  let norm = 0;
  for (const v of a) norm += v * v;
  for (let sweep = 0; sweep < 30; sweep++) {
    let off = 0;
    for (let p = 0; p < size; p++) {
      for (let q = p + 1; q < size; q++) off += a[p * size + q] ** 2;
    }
    if (off <= 1e-26 * norm) break;
    for (let p = 0; p < size; p++) {
      for (let q = p + 1; q < size; q++) {
        const apq = a[p * size + q];
        if (apq === 0) continue;
        const theta = (a[q * size + q] - a[p * size + p]) / (2 * apq);
        const t = (theta >= 0 ? 1 : -1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
        const c = 1 / Math.sqrt(t * t + 1);
        const s = t * c;
        for (let k = 0; k < size; k++) {
          const [kp, kq] = [a[k * size + p], a[k * size + q]];
          a[k * size + p] = c * kp - s * kq;
          a[k * size + q] = s * kp + c * kq;
        }
        for (let k = 0; k < size; k++) {
          const [pk, qk] = [a[p * size + k], a[q * size + k]];
          a[p * size + k] = c * pk - s * qk;
          a[q * size + k] = s * pk + c * qk;
        }
      }
    }
  }
  return Array.from({length: size}, (_, i) => a[i * size + i]).sort((x, y) => y - x);
}
