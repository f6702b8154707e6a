#pragma once

// Random numbers on a GPU: those of base/philox.h. NVRTC compiles it, without any other header.

namespace gallop_cuda {

// base/philox.h's function.
__device__ inline void philox4x32(unsigned key0, unsigned key1, unsigned (&words)[4]) {
  for (int round = 0; round < 10; ++round) {
    const unsigned long long a = 0xD2511F53ULL * words[0], b = 0xCD9E8D57ULL * words[2];
    words[0] = static_cast<unsigned>(b >> 32) ^ words[1] ^ key0;
    words[1] = static_cast<unsigned>(b);
    words[2] = static_cast<unsigned>(a >> 32) ^ words[3] ^ key1;
    words[3] = static_cast<unsigned>(a);
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
}

}  // namespace gallop_cuda
