#include "gallop/base/permutation.h"

#include <bit>

#include "gallop/base/error.h"

namespace gallop {

namespace {

// The 64-bit finalizer of MurmurHash3: a bijective mixer, cheap enough for six calls a sample.
uint64_t mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xFF51AFD7ED558CCDull;
  x ^= x >> 33;
  x *= 0xC4CEB9FE1A85EC53ull;
  x ^= x >> 33;
  return x;
}

}  // namespace

Permutation::Permutation(uint64_t seed, uint64_t epoch, int64_t size) : size_(size) {
  if (size < 1) throw InternalError("permutation of an empty set");
  const auto bits = static_cast<uint32_t>(std::bit_width(static_cast<uint64_t>(size - 1)));
  half_bits_ = bits < 2 ? 1 : (bits + 1) / 2;
  half_mask_ = (uint64_t{1} << half_bits_) - 1;
  Philox random(seed, Purpose::kShuffle, epoch, 0);
  for (auto& key : round_keys_) key = random.next_u64();
}

uint64_t Permutation::encrypt(uint64_t value) const {
  uint64_t left = value >> half_bits_;
  uint64_t right = value & half_mask_;
  for (const uint64_t key : round_keys_) {
    const uint64_t next = left ^ (mix(right + key) & half_mask_);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

int64_t Permutation::operator()(int64_t position) const {
  auto value = static_cast<uint64_t>(position);
  do {
    value = encrypt(value);
  } while (value >= static_cast<uint64_t>(size_));
  return static_cast<int64_t>(value);
}

}  // namespace gallop
