#include "gallop/data/normalize.h"

#include <bit>

#include "gallop/base/error.h"

namespace gallop::data {

namespace {

constexpr int kBlock = 48;

inline void store(float value, float& out) { out = value; }
inline void store(float value, uint16_t& out) {
  const auto bits = std::bit_cast<uint32_t>(value);
  out = static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

template <typename T>
[[gnu::always_inline]] inline void write_bytes(const uint8_t* bytes, int64_t count,
                                               const float* scale, const float* shift, T* out) {
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    for (int k = 0; k < kBlock; ++k) {
      store(static_cast<float>(bytes[i + k]) * scale[k] + shift[k], out[i + k]);
    }
  }
  for (int k = 0; i + k < count; ++k) {
    store(static_cast<float>(bytes[i + k]) * scale[k] + shift[k], out[i + k]);
  }
}

// One version per instruction set. Dispatched by hand, because target_clones resolves before a
// sanitizer's runtime is initialized.
template <typename T>
void write_plain(const uint8_t* bytes, int64_t count, const float* scale, const float* shift,
                 T* out) {
  write_bytes(bytes, count, scale, shift, out);
}

#if defined(__x86_64__)
template <typename T>
[[gnu::target("avx2")]] void write_avx2(const uint8_t* bytes, int64_t count, const float* scale,
                                        const float* shift, T* out) {
  write_bytes(bytes, count, scale, shift, out);
}

template <typename T>
[[gnu::target("avx512f,avx512bw,avx512vl,prefer-vector-width=512")]] void write_avx512(
    const uint8_t* bytes, int64_t count, const float* scale, const float* shift, T* out) {
  write_bytes(bytes, count, scale, shift, out);
}
#endif

template <typename T>
using Write = void (*)(const uint8_t*, int64_t, const float*, const float*, T*);

template <typename T>
Write<T> best_write() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    return write_avx512<T>;
  }
  if (__builtin_cpu_supports("avx2")) return write_avx2<T>;
#endif
  return write_plain<T>;
}

}  // namespace

Normalizer::Normalizer(const std::vector<double>& mean, const std::vector<double>& deviation,
                       c10::ScalarType dtype)
    : dtype_(dtype) {
  if ((mean.size() != 1 && mean.size() != 3) || mean.size() != deviation.size() ||
      (dtype != c10::ScalarType::Float && dtype != c10::ScalarType::BFloat16)) {
    throw InternalError("normalization wants 1 or 3 channels and float32 or bfloat16");
  }
  for (size_t k = 0; k < kBlock; ++k) {
    const size_t channel = k % mean.size();
    scale_[k] = static_cast<float>(1 / (255 * deviation[channel]));
    shift_[k] = static_cast<float>(-mean[channel] / deviation[channel]);
  }
}

void Normalizer::write(const uint8_t* bytes, int64_t count, void* out) const {
  static const Write<float> kFloat = best_write<float>();
  static const Write<uint16_t> kBfloat = best_write<uint16_t>();
  if (dtype_ == c10::ScalarType::Float) {
    kFloat(bytes, count, scale_, shift_, static_cast<float*>(out));
  } else {
    kBfloat(bytes, count, scale_, shift_, static_cast<uint16_t*>(out));
  }
}

}  // namespace gallop::data
