#pragma once

#include <array>
#include <cstdint>

namespace gallop {

/// The purpose of random numbers. Part of the key, so that purposes are independent; values are not
/// stored in files but determine the numbers of every run, so that existing ones never change.
enum class Purpose : uint32_t {
  kShuffle = 1,
  kAugment = 2,
  kInit = 3,
  kDropout = 4,
  kSplit = 5,
  kWindow = 6,
  kSample = 7,
  kRounding = 8,
  kTrial = 9,
  kMask = 10,
  kNoise = 11,
  kPixelDropout = 12,
  kPixels = 13,
  kErasing = 14,
  kErasingNoise = 15,
  kMixBatch = 16,
  kMixRow = 17,
  kMixPartner = 18,
  kTransformChoice = 19,
  kDraw = 20,
};

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a
/// function from (key, counter) to four random words. No state, so the order of draws does not
/// matter.
constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 2> key,
                                             std::array<uint32_t, 4> counter) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// A short stream of random numbers for one (seed, purpose, epoch or step, item).
/// Satisfies std::uniform_random_bit_generator.
class Philox {
 public:
  using result_type = uint32_t;

  /// `epoch` below 2^32; `item` any 64-bit number, for example a sample's index.
  constexpr Philox(uint64_t seed, Purpose purpose, uint64_t epoch, uint64_t item)
      : key_(key_of(seed, purpose)),
        counter_{0, static_cast<uint32_t>(epoch), static_cast<uint32_t>(item),
                 static_cast<uint32_t>(item >> 32)} {}

  static constexpr std::array<uint32_t, 2> key_of(uint64_t seed, Purpose purpose) {
    return {static_cast<uint32_t>(seed),
            static_cast<uint32_t>(seed >> 32) ^ (static_cast<uint32_t>(purpose) * 0x9E3779B9u)};
  }

  constexpr uint32_t operator()() {
    if (used_ == 4) {
      words_ = philox4x32(key_, counter_);
      ++counter_[0];
      used_ = 0;
    }
    return words_[used_++];
  }

  static constexpr uint32_t min() { return 0; }
  static constexpr uint32_t max() { return 0xFFFFFFFFu; }

  constexpr uint64_t next_u64() {
    const uint64_t high = (*this)();
    return high << 32 | (*this)();
  }

  /// Uniform in [0, bound), with negligible bias: a 64-bit draw by multiplication, whose
  /// probabilities differ by less than bound / 2^64. `bound` at least 1.
  constexpr uint64_t below(uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((static_cast<Wide>(next_u64()) * bound) >> 64);
  }

  /// Uniform in [0, 1) with 24 random bits.
  constexpr float uniform() { return static_cast<float>((*this)() >> 8) * 0x1p-24f; }

  constexpr bool coin() { return ((*this)() & 1u) != 0; }

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> words_{};
  int used_ = 4;
};

}  // namespace gallop
